// local.h: a value of its own for every goroutine.
#pragma once

#include <magpie/detail/cxx20.h>

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace magpie {

namespace detail {
std::uint64_t new_local_key();
// The calling goroutine's value for the key (a plain thread's: its own), or null.
void* find_local(std::uint64_t key) noexcept;
// Replaces it; the old one is destroyed. Throws std::bad_alloc, and then destroys the new one.
void store_local(std::uint64_t key, void* value, void (*destroy)(void*));
}  // namespace detail

// A variable of which each goroutine has its own, made from T{} or from a copy of `initial` when first used and
// destroyed when the goroutine ends. On a plain thread: the thread's own. Never blocks.
template <class T>
class Local {
 public:
  Local() : key_(detail::new_local_key()) {}
  explicit Local(T initial) requires std::copy_constructible<T>
      : make_([initial = std::move(initial)] { return std::make_unique<T>(initial); }),
        key_(detail::new_local_key()) {}
  Local(const Local&) = delete;
  Local& operator=(const Local&) = delete;

  // The calling goroutine's value; a reference that is good until the goroutine ends or calls set().
  T& get() {
    if (void* found = detail::find_local(key_)) return *static_cast<T*>(found);
    return store(make_ ? make_() : std::make_unique<T>());
  }
  void set(T value) { store(std::make_unique<T>(std::move(value))); }
  T* operator->() { return &get(); }
  T& operator*() { return get(); }

 private:
  T& store(std::unique_ptr<T> value) {
    T* raw = value.release();
    detail::store_local(key_, raw, [](void* old) { delete static_cast<T*>(old); });
    return *raw;
  }

  const std::function<std::unique_ptr<T>()> make_;  // empty: T{}
  const std::uint64_t key_;
};

}  // namespace magpie
