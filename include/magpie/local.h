// local.h: a variable of which every goroutine has its own value.
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
// The value that the calling goroutine, or plain thread, has for the key. Null: none.
void* find_local(std::uint64_t key) noexcept;
// Replaces the value and destroys the old one. If it throws std::bad_alloc, it has destroyed the
// new one.
void store_local(std::uint64_t key, void* value, void (*destroy)(void*));
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
