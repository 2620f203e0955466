// g.h: a goroutine.
//
//   state     on a queue?     has a stack?   what happens next
//   free      free list       no             spawn takes it
//   fresh     yes             no             the M that dequeues it calls it on the loop's stack
//   runnable  yes             yes            the M that dequeues it switches to its stack
//   running   no              the M's        -
//   waiting   no              yes            its waker readies it, exactly once (park.h; timers and
//                                            events: rest/). The commit step told the waker of it
//   ended     no              no             a joiner may still read its payload
//
// The record tells how to resume the goroutine. Without a stack: call its body. With a stack:
// switch to it. A record has two cache lines: one to schedule the goroutine, one for its closure.
// Names and goroutine-local values are rare and live apart. A record has no link. Queues and free
// lists hold arrays of pointers: another core wrote the records, and walking a list of them costs
// one cache miss after the other. While the runtime runs, the memory of a record is only used for
// another goroutine. So a stale pointer still reads a G.
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
#include "stack/pools.h"
#include "stack/stack.h"

namespace magpie::sched {

struct M;

// Nodes beyond share the shards of the global queue, and the memory, of others.
inline constexpr std::uint32_t kMostNodes = 16;
static_assert(kMostNodes == stack::Pools::kMost);

enum class GState : std::uint8_t { free, fresh, runnable, running, waiting, ended };

// Only few goroutines have this part.
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
  // owner only: the M that runs it, the queue that holds it, or the waker that its commit step told
  union {
    void* saved_sp = nullptr;  // where it resumes, while it has a stack and does not run
    M* thread;                 // in place of saved_sp while bound: the M that waits with it
  };
  stack::Stack* stack = nullptr;  // null: fresh
  detail::TaskBody body = nullptr;
  GExtra* extra = nullptr;
  std::uint64_t id = 0;
  std::uint64_t creator = 0;  // the goroutine that started it; 0: a plain thread

  JoinWord join;    // [join], joinable goroutines only
  ClaimWord claim;  // [claim], joinable goroutines only

  // atomic, a hint: the owner writes; stats and dumps read it late but untorn
  base::Atomic<GState> state{GState::free};
  // atomic, a hint: as state. The upper bits are a mark that dumps leave, see dump/age.h.
  base::Atomic<WaitReason> wait_reason{WaitReason::none};
  WaitReason reason() const { return without_mark(wait_reason.load(base::relaxed)); }

  bool joinable = false;              // fixed while started
  bool asked_for_stack : 1 = false;   // fixed while started: extra->stack_size is not 0
  std::uint8_t node : 7 = 0;          // fixed after construction: whose memory it is
  base::Relaxed<bool> bound = false;  // its owner writes: it stays on its thread, see bound.h
  // While it waits: the low bits of the address of the record, on its stack, that tells what it
  // waits for. park() writes it, see wait_object.h.
  base::Relaxed<std::uint16_t> wait_record = 0;

  alignas(base::kCacheLine) std::byte payload[detail::kInlineBytes];

  // Checks the arrow in debug builds.
  void move(GState from, GState to) {
    MAGPIE_DCHECK(state.load(base::relaxed) == from);
    (void)from;
    state.store(to, base::relaxed);  // relaxed: queues and commit steps give the order
  }

  const char* name() const { return extra == nullptr ? "" : extra->name.c_str(); }

  // Creates the extra part if it is missing. Throws std::bad_alloc.
  GExtra& need_extra() {
    if (extra == nullptr) extra = new GExtra;
    return *extra;
  }
};

static_assert(sizeof(G) == 128, "a million goroutines: every line counts");
static_assert(offsetof(G, payload) == detail::kPayloadOffset);

inline G* g_of(detail::Task* task) { return reinterpret_cast<G*>(task); }
inline detail::Task* task_of(G* g) { return reinterpret_cast<detail::Task*>(g); }

// Fetches the cache lines that starting or resuming g will touch, before they are needed.
inline void prefetch(const G* g) {
  base::prefetch_to_write(g);
  base::prefetch_to_write(g->payload);
}

}  // namespace magpie::sched
