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
    (void)workers_.wait_unless_dropped();  // on a plain thread run() may have ended meanwhile
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

void WorkerPool::wait() { (void)wait_within({}); }

void WorkerPool::wait(const Context& context) {
  std::error_code error;
  if (!wait(context, error)) detail::throw_over(error, "WorkerPool::wait");
}

bool WorkerPool::wait(const Context& context, std::error_code& error) {
  close();
  return detail::wait_with(context, error, [this](sched::CancelSource* source) {
    return wait_within({.source = source});
  });
}

bool WorkerPool::wait_within(const detail::WaitLimit& limit) {
  close();
  WaitGroup::Waited waited = workers_.wait_unless_dropped(limit);
  if (waited == WaitGroup::Waited::limit_reached) return false;
  report(waited);
  return true;
}

// Throws what there is to be thrown.
void WorkerPool::report(WaitGroup::Waited waited) {
  std::exception_ptr error;
  {
    std::lock_guard hold(mutex_);
    error = std::exchange(first_error_, nullptr);
  }
  if (error) std::rethrow_exception(error);
  if (waited == WaitGroup::Waited::dropped)
    throw std::logic_error("magpie: WorkerPool::wait(): its workers were dropped when run() ended");
}

}  // namespace magpie
