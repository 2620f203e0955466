// atomic.h: the one place that says what an atomic is.
//
// Runtime code uses base::Atomic and the short names of the orders. A model test defines
// MAGPIE_MODEL and gets the checker's atomics under the same names. So the checker runs the
// product's own source.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#ifdef MAGPIE_MODEL
#include "model_atomic.h"
#endif

namespace magpie::base {

inline constexpr std::memory_order relaxed = std::memory_order_relaxed;
inline constexpr std::memory_order acquire = std::memory_order_acquire;
inline constexpr std::memory_order release = std::memory_order_release;
inline constexpr std::memory_order acq_rel = std::memory_order_acq_rel;
inline constexpr std::memory_order seq_cst = std::memory_order_seq_cst;

#ifdef MAGPIE_MODEL
template <class T>
using Atomic = model::Atomic<T>;
// A plain variable that a protocol guards. The checker finds accesses to it that nothing orders.
template <class T>
using Guarded = model::Plain<T>;
#else
template <class T>
using Atomic = std::atomic<T>;
template <class T>
using Guarded = T;
#endif

inline constexpr std::size_t kCacheLine = 64;

// A number that one thread writes and any thread may read, late but never torn: counters for
// people.
class Counter {
 public:
  void add(std::uint64_t n) { value_.store(value_.load(relaxed) + n, relaxed); }  // one writer
  void increment() { add(1); }
  std::uint64_t read() const { return value_.load(relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};  // atomic, a count: nothing is ordered by it
};

// A value that one thread uses like a plain one, and any thread may read, late but never torn.
template <class T>
class Relaxed {
 public:
  constexpr Relaxed(T value) : value_(value) {}  // NOLINT: as plain as can be
  Relaxed& operator=(T value) {
    value_.store(value, relaxed);
    return *this;
  }
  operator T() const { return value_.load(relaxed); }  // NOLINT
  T operator->() const { return value_.load(relaxed); }

 private:
  std::atomic<T> value_;  // atomic, a hint: nothing is ordered by it
};

}  // namespace magpie::base
