// local.cc: goroutine-local values. Few goroutines have any and those have few: a list, searched
// from its end.
#include <magpie/local.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "sched/core/g.h"
#include "sched/core/m.h"
#include "sched/current.h"

namespace magpie::detail {
namespace {

using Values = std::vector<sched::GExtra::LocalValue>;

// A plain thread's values die with the thread.
struct ThreadValues {
  Values values;
  ~ThreadValues() {
    while (!values.empty()) {
      auto last = values.back();
      values.pop_back();
      last.destroy(last.value);
    }
  }
};

Values& thread_values() {
  thread_local ThreadValues mine;
  return mine.values;
}

sched::GExtra::LocalValue* find_in(Values& values, std::uint64_t key) {
  for (auto at = values.rbegin(); at != values.rend(); ++at) {
    if (at->key == key) return &*at;
  }
  return nullptr;
}

sched::G* current_g() {
  sched::M* m = sched::current_m();
  if (m == nullptr) return nullptr;
  return m->current;
}

}  // namespace

std::uint64_t new_local_key() {
  static std::atomic<std::uint64_t> next{1};            // atomic, a count: of keys
  return next.fetch_add(1, std::memory_order_relaxed);  // relaxed: only uniqueness counts
}

void* find_local(std::uint64_t key) noexcept {
  sched::G* g = current_g();
  if (g != nullptr && g->extra == nullptr) return nullptr;
  auto* found = find_in(g != nullptr ? g->extra->locals : thread_values(), key);
  return found == nullptr ? nullptr : found->value;
}

void store_local(std::uint64_t key, void* value, void (*destroy)(void*)) {
  try {
    sched::G* g = current_g();
    Values& values = g != nullptr ? g->need_extra().locals : thread_values();
    if (auto* found = find_in(values, key)) {
      void* old = std::exchange(found->value, value);
      destroy(old);
      return;
    }
    values.push_back({key, value, destroy});
  } catch (...) {
    destroy(value);
    throw;
  }
}

}  // namespace magpie::detail
