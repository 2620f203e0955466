#include <magpie/worker_pool.h>

#include <mutex>
#include <stdexcept>
#include <string>

#include <magpie/detail/caught.h>

namespace magpie {

WorkerPool::WorkerPool(int workers, std::size_t queue) : jobs_(queue) {
  if (workers < 1) {
    throw std::invalid_argument("magpie: WorkerPool with " + std::to_string(workers) +
                                " workers: at least 1 is needed");
  }
  try {
    for (int i = 0; i < workers; ++i) workers_.go([this] { work(); });
  } catch (...) {
    jobs_.close();
    workers_.wait();
    throw;
  }
}

WorkerPool::~WorkerPool() {
  close();
  (void)workers_.wait_unless_dropped();
}

void WorkerPool::work() {
  for (JobPointer& job : jobs_) {
    try {
      job->run();
    } catch (...) {
      std::lock_guard hold(mutex_);
      if (!first_error_) first_error_ = detail::caught();
    }
    job.reset();  // before the next one is waited for
  }
}

void WorkerPool::close() {
  std::lock_guard hold(mutex_);
  if (std::exchange(closed_, true)) return;
  jobs_.close();
}

void WorkerPool::wait() {
  close();
  bool all_ended = workers_.wait_unless_dropped();
  std::exception_ptr error;
  {
    std::lock_guard hold(mutex_);
    error = std::exchange(first_error_, nullptr);
  }
  if (error) std::rethrow_exception(error);
  if (!all_ended)
    throw std::logic_error("magpie: WorkerPool::wait(): its workers were dropped when run() ended");
}

}  // namespace magpie
