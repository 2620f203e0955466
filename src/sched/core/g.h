// g.h: a goroutine.
//
//   state     on a queue?     has a stack?         who wakes it
//   free      free list       no                   spawn takes it
//   fresh     yes             no                   whoever dequeues it calls it on the loop's stack
//   runnable  yes             yes                  whoever dequeues it switches to its stack
//   running   no              the M's              -
//   waiting   no              yes                  exactly one ready(), by whoever its commit step told of it
//   ended     no              no                   a joiner may still read its room
//
// What to do to resume a goroutine is its own property: without a stack, call its body; with one, switch to it.
// Two cache lines: one to schedule it, one for its closure. Names and goroutine-local values are rare and live
// apart. No link: queues and free lists hold arrays of pointers, for walking a list whose records another core
// wrote costs a cache miss per step, one after the other.
// Memory of a record becomes another goroutine's only while the runtime runs, so a stale pointer reads a G.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <magpie/detail/task.h>

#include "base/atomic.h"
#include "base/check.h"
#include "base/cpu.h"
#include "sched/core/join_word.h"
#include "sched/wait_reason.h"
#include "stack/stack.h"

namespace magpie::sched {

struct M;

enum class GState : std::uint8_t { free, fresh, runnable, running, waiting, ended };

// What few goroutines have.
struct GExtra {
  std::string name;
  std::size_t stack_size = 0;  // 0: a pooled stack
  struct LocalValue {
    std::uint64_t key;
    void* value;
    void (*destroy)(void*);
  };
  std::vector<LocalValue> locals;
};

struct alignas(base::kCacheLine) G {
  // owner only: the M that runs it, the queue that holds it, or whoever was told of it by its commit step
  union {
    void* saved_sp = nullptr;  // where to go on, while it has a stack and does not run
    M* thread;                 // the same while bound: the M that waits with it
  };
  stack::Stack* stack = nullptr;  // null: fresh
  detail::TaskBody body = nullptr;
  GExtra* extra = nullptr;
  std::uint64_t id = 0;
  std::uint64_t creator = 0;  // goroutine that started it; 0: a plain thread

  JoinWord join;    // [join], joinable goroutines only
  ClaimWord claim;  // [claim], joinable goroutines only

  // atomic, a hint: the owner writes, stats and dumps read, late but untorn
  base::Atomic<GState> state{GState::free};
  base::Atomic<WaitReason> wait_reason{WaitReason::none};

  bool joinable = false;              // fixed while started
  bool asked_for_stack = false;       // fixed while started: extra->stack_size is not 0
  base::Relaxed<bool> bound = false;  // written by its owner: it stays on its thread, see bound.h

  alignas(base::kCacheLine) std::byte room[detail::kInlineBytes];

  // Checks the arrow in debug builds.
  void move(GState from, GState to) {
    MAGPIE_DCHECK(state.load(base::relaxed) == from);
    (void)from;
    state.store(to, base::relaxed);  // relaxed: queues and commit steps order what matters
  }

  const char* name() const { return extra == nullptr ? "" : extra->name.c_str(); }

  // Creates the extra part if it is missing. Throws std::bad_alloc.
  GExtra& need_extra() {
    if (extra == nullptr) extra = new GExtra;
    return *extra;
  }
};

static_assert(sizeof(G) == 128, "a million goroutines: every line counts");
static_assert(offsetof(G, room) == detail::kRoomOffset);

inline G* g_of(detail::Task* task) { return reinterpret_cast<G*>(task); }
inline detail::Task* task_of(G* g) { return reinterpret_cast<detail::Task*>(g); }

// Fetches what starting or resuming it will touch, before it is needed.
inline void prefetch(const G* g) {
  base::prefetch_to_write(g);
  base::prefetch_to_write(g->room);
}

}  // namespace magpie::sched
