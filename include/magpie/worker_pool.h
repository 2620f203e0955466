// worker_pool.h: a fixed number of goroutines that work off a bounded queue.
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
#include <magpie/detail/callable.h>
#include <magpie/detail/deadline.h>
#include <magpie/sync.h>

namespace magpie {

// Runs what is submitted on `workers` goroutines. An exception from a job does not harm the others: the first one is thrown
// by wait(). May be used by many at once.
class WorkerPool {
 public:
  // The queue holds so many jobs that no worker has taken yet. Throws std::invalid_argument for less than one worker,
  // std::logic_error when no runtime runs, std::bad_alloc.
  explicit WorkerPool(int workers, std::size_t queue = 0);
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Closes, and waits until everything that was submitted has been done; an exception from a job is then lost. If it
  // outlives run() its workers are gone, and what they have not done is destroyed.
  ~WorkerPool();

  // Blocks while the queue is full. Throws ClosedChannel after close(), std::bad_alloc.
  template <detail::Callable F>
  void submit(F&& job) {
    jobs_.send(make_job(std::forward<F>(job)));
  }

  // The same without waiting. False: the queue is full and no worker is idle.
  template <detail::Callable F>
  bool try_submit(F&& job) {
    return jobs_.try_send(make_job(std::forward<F>(job)));
  }

  // The same, and waits no longer than so. False: time was up.
  template <class Rep, class Period, detail::Callable F>
  bool try_submit_for(std::chrono::duration<Rep, Period> duration, F&& job) {
    return jobs_.try_send_for(duration, make_job(std::forward<F>(job)));
  }
  template <class Clock, class Duration, detail::Callable F>
  bool try_submit_until(std::chrono::time_point<Clock, Duration> time, F&& job) {
    return jobs_.try_send_until(time, make_job(std::forward<F>(job)));
  }

  // As submit(), but no longer than until the context is over (context.h): then it throws, or
  // returns false, and the job is not done.
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

  // Takes no more jobs; those that were submitted are done. Never blocks. Again: does nothing.
  void close();

  // Blocks until everything that was submitted has been done and the pool is closed: closes it if nobody has.
  // Throws the first exception of a job, once; std::logic_error if the workers were dropped because their run() ended.
  void wait();

  // The same, but no longer than until the context is over (context.h): then it throws, or returns
  // false. The pool is closed, goes on with its jobs, and may be waited for again.
  void wait(const Context& context);
  bool wait(const Context& context, std::error_code& error);

  // The same, but no longer than until time is up: then it returns false.
  template <class Rep, class Period>
  [[nodiscard]] bool wait_for(std::chrono::duration<Rep, Period> duration) {
    return wait_within({.deadline = detail::deadline_after(duration)});
  }
  template <class Clock, class Duration>
  [[nodiscard]] bool wait_until(std::chrono::time_point<Clock, Duration> time) {
    return detail::wait_until(
        time, [this](detail::DeadlineNs deadline) { return wait_within({.deadline = deadline}); });
  }

  // Jobs that no worker has taken yet. A moment's truth.
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
