// shared_function.h: a function that its copies share. Not part of the API.
#pragma once

#include <magpie/detail/cxx20.h>

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include <magpie/detail/callable.h>

namespace magpie::detail {

template <class Signature>
class SharedFunction;

// As std::function, but a copy shares the callable, which is never copied. So it may be move-only.
template <class R, class... Args>
class SharedFunction<R(Args...)> {
 public:
  SharedFunction() noexcept = default;
  SharedFunction(std::nullptr_t) noexcept {}

  template <class F>
  requires(!std::same_as<std::remove_cvref_t<F>, SharedFunction> &&
           std::is_invocable_r_v<R, std::decay_t<F>&, Args...>) SharedFunction(F&& f) {
    using Callable = std::decay_t<F>;
    if constexpr (kMayBeEmpty<std::remove_cvref_t<F>>) {
      if (f == nullptr) return;
    }
    if constexpr (std::is_pointer_v<Callable>) {
      // The pointer itself, which nobody owns: no memory is needed.
      callable_ = std::shared_ptr<void>(std::shared_ptr<void>(), reinterpret_cast<void*>(+f));
      call_ = [](void* callable, Args... args) -> R {
        return reinterpret_cast<Callable>(callable)(std::forward<Args>(args)...);
      };
    } else {
      callable_ = std::make_shared<Callable>(std::forward<F>(f));
      call_ = [](void* callable, Args... args) -> R {
        return std::invoke(*static_cast<Callable*>(callable), std::forward<Args>(args)...);
      };
    }
  }

  explicit operator bool() const noexcept { return callable_ != nullptr; }

  // Throws std::bad_function_call if it is empty.
  R operator()(Args... args) const { return call_(callable_.get(), std::forward<Args>(args)...); }

 private:
  // A function and no lambda: GCC 12 cannot put a lambda that initializes a member into a header
  // unit.
  static R call_nothing(void*, Args...) { throw std::bad_function_call(); }

  std::shared_ptr<void> callable_;  // null: empty
  R (*call_)(void* callable, Args... args) = &call_nothing;
};

}  // namespace magpie::detail
