#include <magpie/task_group.h>

#include <algorithm>
#include <mutex>
#include <stdexcept>

namespace magpie {

TaskGroup::TaskGroup(const Context& parent) : parent_(parent), context_(parent_.with_cancel()) {}

TaskGroup::~TaskGroup() {
  context().cancel();
  (void)wait_for_all();
}

TaskGroup::Waited TaskGroup::wait_for_all(const detail::WaitLimit& limit) {
  Waited waited = Waited::all_ended;
  for (;;) {
    switch (running_.wait_unless_dropped(limit)) {
      case WaitGroup::Waited::zero:
        return waited;
      case WaitGroup::Waited::limit_reached:
        return Waited::limit_reached;
      case WaitGroup::Waited::dropped:
        waited = Waited::some_dropped;
        forget_dropped();
    }
  }
}

void TaskGroup::forget_dropped() {
  std::lock_guard hold(mutex_);
  if (!running_.counts_dropped()) return;
  running_.forget_dropped();
  std::int64_t dropped = active_.exchange(0, std::memory_order_acq_rel);
  if (slots_) slots_->release(dropped);
}

void TaskGroup::wait() { (void)wait_within({}); }

void TaskGroup::wait(const Context& context) {
  std::error_code error;
  if (!wait(context, error)) detail::throw_over(error, "TaskGroup::wait");
}

bool TaskGroup::wait(const Context& context, std::error_code& error) {
  return detail::wait_with(context, error, [this](sched::CancelSource* source) {
    return wait_within({.source = source});
  });
}

bool TaskGroup::wait_within(const detail::WaitLimit& limit) {
  Waited waited = wait_for_all(limit);
  if (waited == Waited::limit_reached) return false;
  report(waited);
  return true;
}

// All have ended, or are gone. Throws what there is to be thrown.
void TaskGroup::report(Waited waited) {
  std::exception_ptr error;
  Context over = context();
  Context next = parent_.with_cancel();
  {
    std::lock_guard hold(mutex_);
    error = std::exchange(first_error_, nullptr);
    context_ = next;
  }
  over.cancel();
  if (error) std::rethrow_exception(error);
  if (waited == Waited::some_dropped)
    throw std::logic_error(
        "magpie: TaskGroup::wait(): goroutines of the group were dropped when their run() ended");
}

void TaskGroup::set_limit(std::int64_t n) {
  if (running_.counts_dropped()) forget_dropped();
  if (running_.wait_unless_dropped({.deadline = 0}) != WaitGroup::Waited::zero)
    throw std::logic_error("magpie: TaskGroup::set_limit() while goroutines of the group run");
  slots_ = n < 1 ? nullptr : std::make_unique<Semaphore>(std::min(n, Semaphore::max()));
}

Context TaskGroup::context() const {
  std::lock_guard hold(mutex_);
  return context_;
}

void TaskGroup::take_slot() {
  if (running_.counts_dropped()) forget_dropped();
  if (slots_) slots_->acquire();
  active_.fetch_add(1, std::memory_order_relaxed);
}

bool TaskGroup::take_slot(const Context& context, std::error_code& error) {
  error = detail::end_of(context);
  if (error) return false;
  if (running_.counts_dropped()) forget_dropped();
  if (slots_ && !slots_->acquire(context, error)) return false;
  active_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

bool TaskGroup::take_slot_until(detail::DeadlineNs deadline) {
  if (running_.counts_dropped()) forget_dropped();
  if (slots_ && !slots_->try_acquire_until(detail::steady_time(deadline))) return false;
  active_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

bool TaskGroup::try_take_slot() { return take_slot_until(0); }

// If run() drops the goroutine as it gives its slot back, forget_dropped() must not do that again:
// so active_ counts it no more. done() is last: after that set_limit() may destroy the semaphore,
// and wait() the group.
void TaskGroup::end_one() {
  active_.fetch_sub(1, std::memory_order_relaxed);
  if (slots_) slots_->release();
  running_.done();
}

void TaskGroup::note_failure(std::exception_ptr error) {
  Context failed = context();
  {
    std::lock_guard hold(mutex_);
    if (first_error_) return;
    first_error_ = error;
  }
  failed.cancel(std::move(error));
}

}  // namespace magpie
