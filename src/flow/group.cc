#include <magpie/group.h>

#include <mutex>
#include <stdexcept>

namespace magpie {

TaskGroup::TaskGroup(const Context& parent) : parent_(parent), context_(parent_.with_cancel()) {}

TaskGroup::~TaskGroup() {
  context().cancel();
  wait_for_all();
}

TaskGroup::Waited TaskGroup::wait_for_all() {
  Waited waited = Waited::all_ended;
  while (!running_.wait_unless_dropped()) {
    waited = Waited::some_dropped;
    forget_dropped();
  }
  return waited;
}

void TaskGroup::forget_dropped() {
  std::lock_guard hold(mutex_);
  if (!running_.counts_dropped()) return;
  running_.forget_dropped();
  std::int64_t dropped = active_.exchange(0, std::memory_order_acq_rel);
  if (slots_) slots_->release(dropped);
}

void TaskGroup::wait() {
  Waited waited = wait_for_all();
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
  if (active_.load(std::memory_order_acquire) != 0)
    throw std::logic_error("magpie: TaskGroup::set_limit() while goroutines of the group run");
  slots_ = n < 1 ? nullptr : std::make_unique<Semaphore>(n);
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

bool TaskGroup::try_take_slot() {
  if (running_.counts_dropped()) forget_dropped();
  if (slots_ && !slots_->try_acquire()) return false;
  active_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

// The slot first: once active_ is 0 set_limit() may destroy the semaphore. release pairs with its acquire. done() is
// last: wait() may destroy the group then.
void TaskGroup::end_one() {
  if (slots_) slots_->release();
  active_.fetch_sub(1, std::memory_order_release);
  running_.done();
}

void TaskGroup::note_failure(std::exception_ptr error) {
  Context failed = context();
  {
    std::lock_guard hold(mutex_);
    if (first_error_) return;
    first_error_ = std::move(error);
  }
  failed.cancel();
}

}  // namespace magpie
