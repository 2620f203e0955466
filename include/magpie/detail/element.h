// element.h: how a value gets into a channel and out of it. Not part of the API.
//
// A small T that moves plainly (plain_move.h) is moved from stack to ring to stack. Any other T is
// carried as a pointer to a box on the heap. The sender makes the box before it touches the
// channel. The receiver, or the channel's destructor, empties and deletes it. All of that is
// outside the runtime. Under the channel's lock pointers are copied, and no user code runs.
#pragma once

#include <magpie/detail/cxx20.h>

#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>

#include <magpie/detail/chan_core.h>
#include <magpie/plain_move.h>

namespace magpie::detail {

inline constexpr std::size_t kLargestInline = 512;

template <class T>
inline constexpr bool kCarriedOnHeap =
    !moves_plainly<T> || !std::is_nothrow_move_constructible_v<T> ||
    !std::is_nothrow_destructible_v<T> || sizeof(T) > kLargestInline;

// What the channel really carries.
template <class T>
using Carried = std::conditional_t<kCarriedOnHeap<T>, T*, T>;

template <class T>
struct Element {
  using Stored = Carried<T>;
  static constexpr bool kBytes =
      std::is_trivially_copyable_v<Stored> && std::is_trivially_move_constructible_v<Stored>;

  static void move(void* to, void* from) noexcept {
    ::new (to) Stored(std::move(*static_cast<Stored*>(from)));
  }
  static void destroy(void* element) noexcept {
    if constexpr (kCarriedOnHeap<T>) {
      delete *static_cast<T**>(element);
    } else {
      static_cast<T*>(element)->~T();
    }
  }
  static constexpr bool kNeedsDestroy = kCarriedOnHeap<T> || !std::is_trivially_destructible_v<T>;
  static constexpr ElementKind kKind{sizeof(Stored), alignof(Stored), kBytes ? nullptr : &move,
                                     kNeedsDestroy ? &destroy : nullptr};
};

template <>
struct Element<void> {
  static constexpr ElementKind kKind{0, 1, nullptr, nullptr};
};

// A value on its way in. Refers to the value, or owns its box until let_go().
template <class T>
class Outgoing {
 public:
  explicit Outgoing(T& value) : value_(std::addressof(value)) {}
  void* address() { return value_; }
  void let_go() {}
  void give_back(T&) {}

 private:
  T* value_;
};

template <class T>
requires kCarriedOnHeap<T>
class Outgoing<T> {
 public:
  explicit Outgoing(T& value) : box_(new T(std::move_if_noexcept(value))) {}
  ~Outgoing() { delete box_; }
  Outgoing(const Outgoing&) = delete;
  Outgoing& operator=(const Outgoing&) = delete;

  void* address() { return &box_; }
  void let_go() { box_ = nullptr; }
  // The channel did not take the value. A copy is dropped. A move that throws here ends the
  // program.
  void give_back(T& value) noexcept {
    if constexpr (std::is_nothrow_move_constructible_v<T> || !std::is_copy_constructible_v<T>) {
      if constexpr (kAssigns) {
        value = std::move(*box_);
      } else {
        std::destroy_at(std::addressof(value));
        std::construct_at(std::addressof(value), std::move(*box_));
      }
    }
  }

 private:
  // Assigned, unless only construction is sure not to throw.
  static constexpr bool kAssigns =
      std::is_nothrow_move_assignable_v<T> ||
      (std::is_move_assignable_v<T> && !std::is_nothrow_move_constructible_v<T>);

  T* box_;
};

// Room for a value on its way out.
template <class T>
class Incoming {
 public:
  Incoming() {}
  ~Incoming() {}
  Incoming(const Incoming&) = delete;
  Incoming& operator=(const Incoming&) = delete;

  void* address() { return std::addressof(value_); }

  std::optional<T> take(ChanResult result) {
    if (result != ChanResult::done) return std::nullopt;
    if constexpr (kCarriedOnHeap<T>) {
      std::unique_ptr<T> owner(value_);
      return std::optional<T>(std::move(*owner));
    } else {
      struct Destroyed {
        T& value;
        ~Destroyed() { value.~T(); }
      } destroyed{value_};
      return std::optional<T>(std::move(value_));
    }
  }

 private:
  union {
    Carried<T> value_;  // once received
  };
};

// Gives out the core of a handle.
struct ChanAccess {
  template <class Channel>
  static ChanCore* core(const Channel& channel) noexcept {
    return channel.core_;
  }
};

}  // namespace magpie::detail
