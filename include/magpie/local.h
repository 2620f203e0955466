// local.h: a variable of which every goroutine has its own value.
#pragma once

#include <magpie/detail/cxx20.h>

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>

#include <magpie/detail/api.h>

namespace magpie {

namespace detail {
MAGPIE_API std::uint64_t new_local_key();
// The value that the calling goroutine, or plain thread, has for the key. Null: none.
MAGPIE_API void* find_local(std::uint64_t key) noexcept;
// Replaces the value and destroys the old one. If it throws std::bad_alloc, it has destroyed the
// new one.
MAGPIE_API void store_local(std::uint64_t key, void* value, void (*destroy)(void*));
}  // namespace detail

// A variable of which each goroutine has its own value. The first use makes it from T{} or from a
// copy of `initial`; the end of the goroutine destroys it. A plain thread has its own value too.
// Never blocks.
template <class T>
class Local {
 public:
  Local() : key_(detail::new_local_key()) {}
  explicit Local(T initial) requires std::copy_constructible<T>
      : make_([initial = std::move(initial)] { return std::make_unique<T>(initial); }),
        key_(detail::new_local_key()) {}
  Local(const Local&) = delete;
  Local& operator=(const Local&) = delete;

  // The calling goroutine's value. The reference is valid until the goroutine ends or calls set().
  // Throws what making the value throws; std::logic_error if there is no `initial`, and T has no
  // default constructor.
  T& get() {
    if (void* found = detail::find_local(key_)) return *static_cast<T*>(found);
    return store(first_value());
  }
  void set(T value) { store(std::make_unique<T>(std::move(value))); }

  // Wraps f in a function with the caller's value: it sets the value in the goroutine that calls
  // it, calls f, and puts the value back that was there before. So a trace id, or a span, follows
  // work into another goroutine: go(span.carry(f)), pool.submit(span.carry(f)). To carry several
  // Locals: a.carry(b.carry(f)). If f may be called several times, or by several goroutines at
  // once, so may the function. The Local has to outlive it.
  template <class F>
  auto carry(F f) requires std::copyable<T> {
    return [this, value = get(), f = std::move(f)](auto&&... args) mutable -> decltype(auto) {
      Replaced replaced(*this, value);
      return std::invoke(f, std::forward<decltype(args)>(args)...);
    };
  }

  T* operator->() { return std::addressof(get()); }
  T& operator*() { return get(); }

 private:
  // While a Replaced lives, the calling goroutine has another value.
  class Replaced {
   public:
    Replaced(Local& local, const T& value) : local_(local), other_(value) { exchange(); }
    ~Replaced() { exchange(); }
    Replaced(const Replaced&) = delete;
    Replaced& operator=(const Replaced&) = delete;

   private:
    // In place: the goroutine may hold a reference from get().
    void exchange() { std::ranges::swap(local_.get(), other_); }

    Local& local_;
    T other_;  // the value that the goroutine does not have now
  };

  std::unique_ptr<T> first_value() const {
    if constexpr (std::default_initializable<T>) {
      if (!make_) return std::make_unique<T>();
    }
    if (!make_) throw std::logic_error("magpie: Local: get() before set(), and no initial value");
    return make_();
  }

  T& store(std::unique_ptr<T> value) {
    T* raw = value.release();
    detail::store_local(key_, raw, [](void* old) { delete static_cast<T*>(old); });
    return *raw;
  }

  const std::function<std::unique_ptr<T>()> make_;  // empty: T{}
  const std::uint64_t key_;
};

}  // namespace magpie
