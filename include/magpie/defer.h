// defer.h: calls a function at the end of a scope, however the scope is left.
#pragma once

#include <magpie/detail/cxx20.h>

#include <type_traits>
#include <utility>

namespace magpie {

//   magpie::Defer tidy([&] { remove(path); });
//
// Calls f when it is destroyed. Several in one scope are called in reverse order. f may block. If f
// throws, the program is terminated. run() does not unwind the stacks of goroutines that it drops:
// there f is not called.
template <class F>
class [[nodiscard]] Defer {
  static_assert(std::is_invocable_v<F&>, "Defer calls a function without arguments");

 public:
  explicit Defer(F f) : function_(std::move(f)) {}
  Defer(const Defer&) = delete;
  Defer& operator=(const Defer&) = delete;
  ~Defer() {
    if (is_due_) (void)function_();
  }

  // f will not be called. Never blocks.
  void dismiss() noexcept { is_due_ = false; }

 private:
  [[no_unique_address]] F function_;
  bool is_due_ = true;
};

}  // namespace magpie
