// local.cc: goroutine-local values. Few goroutines have any, and they have few: a list, searched
// from its end.
#include <magpie/local.h>

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "base/thread_end.h"
#include "sched/core/g.h"
#include "sched/core/m.h"
#include "sched/current.h"

namespace magpie::detail {
namespace {

using Values = std::vector<sched::GExtra::LocalValue>;

// A plain thread's values: they die with it. Null: it has none, or none any more.
constinit thread_local Values* values_of_thread = nullptr;

void destroy_thread_values(void*) {
  Values& values = *values_of_thread;
  while (!values.empty()) {
    auto last = values.back();
    values.pop_back();
    last.destroy(last.value);  // may make others
  }
  delete std::exchange(values_of_thread, nullptr);
}

// Also after destroy_thread_values(): the destructor of a user's thread_local may want a value.
Values& need_thread_values() {
  if (values_of_thread == nullptr) {
    values_of_thread = new Values;
    base::at_thread_end(destroy_thread_values, nullptr);
  }
  return *values_of_thread;
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
  return next.fetch_add(1, std::memory_order_relaxed);  // relaxed: it only has to be unique
}

void* find_local(std::uint64_t key) noexcept {
  sched::G* g = current_g();
  Values* values = values_of_thread;
  if (g != nullptr) values = g->extra == nullptr ? nullptr : &g->extra->locals;
  if (values == nullptr) return nullptr;
  auto* found = find_in(*values, key);
  return found == nullptr ? nullptr : found->value;
}

void store_local(std::uint64_t key, void* value, void (*destroy)(void*)) {
  try {
    sched::G* g = current_g();
    Values& values = g != nullptr ? g->need_extra().locals : need_thread_values();
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
