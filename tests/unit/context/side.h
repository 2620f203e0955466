// side.h: stacks to switch between, without a scheduler.
//
//   Side here;                                       // the thread's own stack
//   Side there([&](void* first) { ... });            // a prepared one; runs when first switched to
//   void* answer = switch_sides(here, there, value);
//
// The hooks of base/sanitizer.h are called as the scheduler calls them. When the body returns,
// whoever switched here last goes on with a null value, and the side is over.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

#include "base/sanitizer.h"
#include "context/switch.h"

namespace magpie::context {

class Side {
 public:
  using Body = std::function<void(void* first)>;

  Side() { base::adopt_thread_stack(fiber_); }

  explicit Side(Body body) : body_(std::move(body)), memory_(std::make_unique<Memory>()) {
    base::open_fiber(fiber_, memory_->bytes, sizeof memory_->bytes);
    base::restart_fiber(fiber_);
    sp_ = prepare(memory_->bytes + sizeof memory_->bytes, enter);
  }

  ~Side() {
    if (memory_ == nullptr) return;
    base::close_fiber(fiber_);
    base::forget_memory(memory_->bytes, sizeof memory_->bytes);
  }

  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  bool is_over() const { return over_; }

  // Where on its stack an address lies; false for addresses elsewhere.
  bool holds(const void* address) const {
    auto* byte = static_cast<const std::byte*>(address);
    return memory_ != nullptr && byte >= memory_->bytes &&
           byte < memory_->bytes + sizeof memory_->bytes;
  }

  // The first function on a prepared stack.
  static Entry entry() { return enter; }

 private:
  friend void* switch_sides(Side& from, Side& to, void* value, base::Departure leave);

  struct Memory {
    alignas(64) std::byte bytes[256 * 1024];
  };

  // The side that was left last, and the one that goes on. One thread switches in each test.
  static inline Side* left = nullptr;
  static inline Side* now = nullptr;

  static void enter(void* value);

  Body body_;
  std::unique_ptr<Memory> memory_;
  base::Fiber fiber_;
  void* sp_ = nullptr;
  bool over_ = false;
};

[[MAGPIE_SWITCHES]] inline void* switch_sides(
    Side& from, Side& to, void* value, base::Departure leave = base::Departure::to_come_back) {
  Side::left = &from;
  Side::now = &to;
  base::before_switch(from.fiber_, to.fiber_, leave);
  void* answer = swap(&from.sp_, to.sp_, value);
  base::after_switch(from.fiber_, Side::left->fiber_);
  return answer;
}

[[gnu::noinline]] inline void Side::enter(void* value) {
  Side& self = *now;
  base::after_switch(self.fiber_, left->fiber_);
  self.body_(value);
  self.over_ = true;
  switch_sides(self, *left, nullptr, base::Departure::for_ever);
}

}  // namespace magpie::context
