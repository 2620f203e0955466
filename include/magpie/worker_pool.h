// worker_pool.h: a fixed number of goroutines that work through a bounded queue.
#pragma once

#include <magpie/detail/cxx20.h>

#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <system_error>
#include <type_traits>
#include <utility>

#include <magpie/chan.h>
#include <magpie/context.h>
#include <magpie/detail/api.h>
#include <magpie/detail/callable.h>
#include <magpie/detail/deadline.h>
#include <magpie/sync.h>

namespace magpie {

// Runs submitted jobs on `workers` goroutines. An exception from a job does not harm other jobs:
// wait() throws the first one. Any number of goroutines and threads may use a pool at once. The end
// of run() drops the workers: then a thread in submit() waits until close(), its context or its
// time limit ends that.
class MAGPIE_API WorkerPool {
 public:
  // `queue` is the number of jobs that may wait for a worker. Throws std::invalid_argument for less
  // than one worker, std::logic_error if no runtime runs, std::bad_alloc.
  explicit WorkerPool(int workers, std::size_t queue = 0);
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Closes the pool and blocks until all submitted jobs are done; an exception from a job is lost.
  // After the end of run() the workers are gone, and the jobs that they have not done are
  // destroyed.
  ~WorkerPool();

  // Blocks while the queue is full. Throws ClosedChannel after close(), std::invalid_argument for
  // an empty std::function or a null pointer, std::bad_alloc.
  template <detail::Callable F>
  void submit(F&& job) {
    jobs_.send(make_job(std::forward<F>(job)));
  }

  // As submit(), without waiting. False: the queue is full and no worker is idle; the job is not
  // done.
  template <detail::Callable F>
  bool try_submit(F&& job) {
    return jobs_.try_send(make_job(std::forward<F>(job)));
  }

  // As submit(), until time is up. False: time was up; the job is not done. Any clock will do.
  template <class Rep, class Period, detail::Callable F>
  bool try_submit_for(std::chrono::duration<Rep, Period> duration, F&& job) {
    return jobs_.try_send_for(duration, make_job(std::forward<F>(job)));
  }
  template <class Clock, class Duration, detail::Callable F>
  bool try_submit_until(std::chrono::time_point<Clock, Duration> time, F&& job) {
    return jobs_.try_send_until(time, make_job(std::forward<F>(job)));
  }

  // As submit(), until the context is over (context.h): then it throws std::system_error; with
  // `error`, it returns false; the job is not done.
  template <detail::Callable F>
  void submit(const Context& context, F&& job) {
    std::error_code error;
    if (!submit(context, std::forward<F>(job), error))
      detail::throw_over(error, "WorkerPool::submit");
  }
  template <detail::Callable F>
  bool submit(const Context& context, F&& job, std::error_code& error) {
    error = detail::end_of(context);  // before the job is moved from
    return !error && jobs_.send(context, make_job(std::forward<F>(job)), error);
  }

  // Takes no more jobs; submitted ones are done. Never blocks. Does nothing the second time.
  void close();

  // Closes the pool and blocks until all submitted jobs are done. Throws the first exception of a
  // job, once; std::logic_error if run() has dropped the workers.
  void wait();

  // As wait(), until the context is over (context.h): then it throws std::system_error; with
  // `error`, it returns false. The pool is closed, goes on with its jobs, and may be waited for
  // again.
  void wait(const Context& context);
  bool wait(const Context& context, std::error_code& error);

  // As wait(), until time is up. False: the pool goes on with its jobs and may be waited for again.
  template <class Rep, class Period>
  [[nodiscard]] bool wait_for(std::chrono::duration<Rep, Period> duration) {
    return wait_within({.deadline = detail::deadline_after(duration)});
  }
  template <class Clock, class Duration>
  [[nodiscard]] bool wait_until(std::chrono::time_point<Clock, Duration> time) {
    return detail::wait_until(
        time, [this](detail::DeadlineNs deadline) { return wait_within({.deadline = deadline}); });
  }

  // How many jobs wait for a worker. A snapshot.
  std::size_t queued() const { return jobs_.size(); }

 private:
  struct Job {
    virtual ~Job() = default;
    virtual void run() = 0;
  };
  template <class F>
  struct JobOf final : Job {
    template <class G>
    explicit JobOf(G&& f) : call(std::forward<G>(f)) {}
    void run() override { (void)call(); }
    F call;
  };
  using JobPointer = std::unique_ptr<Job>;

  template <class F>
  static JobPointer make_job(F&& f) {
    detail::check_not_empty(f);
    return std::make_unique<JobOf<std::decay_t<F>>>(std::forward<F>(f));
  }

  void work();
  // False: the limit was reached. Throws what wait() throws.
  bool wait_within(const detail::WaitLimit& limit);
  void report(WaitGroup::Waited waited);

  Chan<JobPointer> jobs_;
  WaitGroup workers_;

  Mutex mutex_;
  // guarded by mutex_
  bool closed_ = false;
  std::exception_ptr first_error_;
};

}  // namespace magpie
