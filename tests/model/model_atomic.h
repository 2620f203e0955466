// model_atomic.h: the atomics that a model runs the product's source with. base/atomic.h picks them
// under MAGPIE_MODEL; they are Relacy's, with the standard's interface.
//
// Relacy runs the threads of a model one step at a time. Before each atomic step it chooses who
// goes on, and for each load which of the values that the orders allow it returns.
// Three things it does not show: a load that sees a store which runs later (load buffering), a
// failed compare-exchange that read an outdated value, and seq_cst fences that do not also
// synchronise.
//
// Mutants, for a model that names them (see mutant.h):
//   MUTANT_RELAXED_RELEASE   release means nothing
//   MUTANT_RELAXED_ACQUIRE   acquire means nothing
//   MUTANT_WEAK_SEQ_CST      seq_cst is only acq_rel
//   MUTANT_NO_FENCE          there are no fences
//   MUTANT_BLIND_EXCHANGE    compare_exchange_strong does not compare
//   MUTANT_TORN_EXCHANGE     exchange is a load and a store
#pragma once

// Relacy's macros rename what these declare, so they come first.
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <new>
#include <source_location>
#include <type_traits>
#include <utility>

#include "mutant.h"

#include <relacy/relacy.hpp>

#undef memory_order_relaxed
#undef memory_order_consume
#undef memory_order_acquire
#undef memory_order_release
#undef memory_order_acq_rel
#undef memory_order_seq_cst
#undef new
#undef delete
#undef malloc
#undef calloc
#undef realloc
#undef free
#undef assert

namespace model {

struct Order {
  bool acquires;
  bool releases;
  bool total;  // seq_cst
};

inline Order meaning_of(std::memory_order order) {
  Order means{order == std::memory_order_acquire || order == std::memory_order_acq_rel,
              order == std::memory_order_release || order == std::memory_order_acq_rel,
              order == std::memory_order_seq_cst};
  if (means.total && chosen<"MUTANT_WEAK_SEQ_CST">()) means = {true, true, false};
  if (chosen<"MUTANT_RELAXED_RELEASE">()) means.releases = false;
  if (chosen<"MUTANT_RELAXED_ACQUIRE">()) means.acquires = false;
  return means;
}

inline rl::memory_order for_load(std::memory_order order) {
  Order means = meaning_of(order);
  return means.total ? rl::mo_seq_cst : means.acquires ? rl::mo_acquire : rl::mo_relaxed;
}

inline rl::memory_order for_store(std::memory_order order) {
  Order means = meaning_of(order);
  return means.total ? rl::mo_seq_cst : means.releases ? rl::mo_release : rl::mo_relaxed;
}

inline rl::memory_order for_both(std::memory_order order) {
  Order means = meaning_of(order);
  if (means.total) return rl::mo_seq_cst;
  if (means.acquires) return means.releases ? rl::mo_acq_rel : rl::mo_acquire;
  return means.releases ? rl::mo_release : rl::mo_relaxed;
}

// The line of the product or the model that does a step, for Relacy's history.
using Where = std::source_location;
inline rl::debug_info place(Where where) {
  return {where.function_name(), where.file_name(), where.line()};
}

template <class T>
class Atomic {
  // Relacy's history would print a byte as a character, and cannot print an enumerator.
  using Stored =
      std::conditional_t<std::is_same_v<T, std::uint8_t> || std::is_enum_v<T>, unsigned, T>;
  static Stored stored(T value) { return static_cast<Stored>(value); }

 public:
  Atomic() : Atomic(T{}) {}
  Atomic(T value) : value_(stored(value)) {}  // NOLINT: as std::atomic
  Atomic(const Atomic&) = delete;
  Atomic& operator=(const Atomic&) = delete;

  T load(std::memory_order order, Where where = Where::current()) const {
    T value = static_cast<T>(value_.load(for_load(order), place(where)));
    bool outdated = value != peek();
    int& patience = outdated_in_a_row_[rl::thread_index()];
    patience = outdated ? patience + 1 : 0;
    // A store becomes visible in finite time: a thread that read an outdated value twice is told
    // so, lest a loop reads it for ever. Relacy's yield also lets the other threads go on.
    if (patience == 2) {
      patience = 0;
      rl::yield(1, place(where));
    }
    return value;
  }
  void store(T value, std::memory_order order, Where where = Where::current()) {
    value_.store(stored(value), for_store(order), place(where));
  }
  T exchange(T value, std::memory_order order, Where where = Where::current()) {
    if (chosen<"MUTANT_TORN_EXCHANGE">()) {
      T before = static_cast<T>(value_.load(for_load(order), place(where)));
      value_.store(stored(value), for_store(order), place(where));
      return before;
    }
    return static_cast<T>(value_.exchange(stored(value), for_both(order), place(where)));
  }
  T fetch_add(T value, std::memory_order order, Where where = Where::current()) {
    return static_cast<T>(value_.fetch_add(value, for_both(order), place(where)));
  }
  T fetch_sub(T value, std::memory_order order, Where where = Where::current()) {
    return static_cast<T>(value_.fetch_sub(value, for_both(order), place(where)));
  }

  T fetch_or(T value, std::memory_order order, Where where = Where::current()) {
    return static_cast<T>(value_.fetch_or(value, for_both(order), place(where)));
  }
  T fetch_and(T value, std::memory_order order, Where where = Where::current()) {
    return static_cast<T>(value_.fetch_and(value, for_both(order), place(where)));
  }

  bool compare_exchange_strong(T& expected, T desired, std::memory_order success,
                               std::memory_order failure, Where where = Where::current()) {
    if (chosen<"MUTANT_BLIND_EXCHANGE">()) {
      value_.exchange(stored(desired), for_both(success), place(where));
      return true;
    }
    Stored found = stored(expected);
    bool done = value_.compare_exchange_strong(found, stored(desired), for_both(success),
                                               place(where), for_load(failure), place(where));
    expected = static_cast<T>(found);
    return done;
  }
  // Also fails when it need not.
  bool compare_exchange_weak(T& expected, T desired, std::memory_order success,
                             std::memory_order failure, Where where = Where::current()) {
    Stored found = stored(expected);
    bool done = value_.compare_exchange_weak(found, stored(desired), for_both(success),
                                             place(where), for_load(failure), place(where));
    expected = static_cast<T>(found);
    return done;
  }

  // The newest value, by the model's own checks: no step of the program.
  T peek() const { return static_cast<T>(value_.debug_value()); }

 private:
  static constexpr int kMostThreads = 8;
  rl::atomic<Stored> value_;
  mutable int outdated_in_a_row_[kMostThreads] = {};
};

// A plain variable that an agreement guards. An access that nothing orders is an error.
template <class T>
class Plain {
 public:
  Plain(T value) { value_(RL_INFO) = value; }  // NOLINT: as plain as can be
  Plain& operator=(T value) {
    value_(RL_INFO) = value;
    return *this;
  }
  operator T() const { return value_(RL_INFO); }  // NOLINT

 private:
  mutable rl::var<T> value_;
};

inline void seq_cst_fence(Where where = Where::current()) {
  if (!chosen<"MUTANT_NO_FENCE">()) rl::atomic_thread_fence(rl::mo_seq_cst, place(where));
}

}  // namespace model
