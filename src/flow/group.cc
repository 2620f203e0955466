#include <magpie/group.h>

#include <mutex>
#include <stdexcept>

namespace magpie {

TaskGroup::TaskGroup(const Context& parent) : parent_(parent), context_(parent_.with_cancel()) {}

TaskGroup::~TaskGroup() {
  if (active_.load(std::memory_order_relaxed) != 0)
    context().cancel();  // relaxed: only to hurry them
  running_.wait();
}

void TaskGroup::wait() {
  running_.wait();
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
  if (slots_) slots_->acquire();
  active_.fetch_add(1, std::memory_order_relaxed);
}

bool TaskGroup::try_take_slot() {
  if (slots_ && !slots_->try_acquire()) return false;
  active_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

// done() is last: wait() may destroy the group then.
void TaskGroup::end_one() {
  active_.fetch_sub(1, std::memory_order_release);
  if (slots_) slots_->release();
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
