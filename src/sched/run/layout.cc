#include "sched/run/layout.h"

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include <magpie/detail/api.h>

#include "sched/core/g.h"
#include "sched/core/m.h"
#include "sched/core/p.h"
#include "sched/run/runtime.h"
#include "sched/wait_reason.h"

// The records are not of standard layout. The compilers that we know give the right offsets all the
// same, as no record has a virtual base.
#pragma GCC diagnostic ignored "-Winvalid-offsetof"

// The text of debugger/magpie-gdb.py, in a section that is not loaded at run time. gdb runs it when
// it opens the program, if its auto-load safe-path has the program. 4: Python text, with a name.
#ifdef MAGPIE_GDB_SCRIPT
asm(".pushsection .debug_gdb_scripts, \"MS\", %progbits, 1\n"
    ".byte 4\n"
    ".ascii \"magpie-gdb\\n\"\n"
    ".incbin \"" MAGPIE_GDB_SCRIPT
    "\"\n"
    ".byte 0\n"
    ".popsection\n");
#endif

namespace magpie::sched {

constexpr std::size_t kWaitReasons = static_cast<std::size_t>(WaitReason::join_in_place) + 1;

constexpr LayoutEntry entry(std::string_view name, std::size_t value, std::string_view rest = {}) {
  LayoutEntry made{};
  std::size_t length = 0;
  for (char letter : name) made.name[length++] = letter;
  for (char letter : rest) made.name[length++] = letter;
  made.value = static_cast<std::uint32_t>(value);
  return made;
}

// A friend of the classes that it describes.
struct Layout {
  static constexpr std::array kParts = {
      entry("Runtime.preempted", offsetof(Runtime, preempted)),
      entry("Runtime.pools", offsetof(Runtime, records) + offsetof(GPools, pools_)),
      entry("Runtime.pool_count", offsetof(Runtime, records) + offsetof(GPools, count_)),
      entry("Runtime.newest_m", offsetof(Runtime, threads) + offsetof(Threads, newest_)),
      entry("Runtime.ps", offsetof(Runtime, ps) + offsetof(PTable, published_) +
                              offsetof(PublishedTable<P*>, table_)),
      entry("Runtime.ps_in_use", offsetof(Runtime, ps) + offsetof(PTable, published_) +
                                     offsetof(PublishedTable<P*>, in_use_)),
      entry("Runtime.shards", offsetof(Runtime, global) + offsetof(GlobalQueue, shards_)),
      entry("Runtime.shard_count", offsetof(Runtime, global) + offsetof(GlobalQueue, shard_count_)),

      entry("Shard.size", sizeof(Shard)),
      entry("Shard.usual", offsetof(Shard, usual_)),
      entry("Shard.urgent", offsetof(Shard, urgent_)),
      entry("Shard.stopped", offsetof(Shard, stopped_)),
      entry("Line.head", offsetof(Shard::Line, head)),
      entry("Chunk.next", offsetof(Chunk, next)),
      entry("Chunk.first", offsetof(Chunk, first)),
      entry("Chunk.end", offsetof(Chunk, end)),
      entry("Chunk.items", offsetof(Chunk, items)),

      entry("Pool.size", sizeof(GPool)),
      entry("Pool.slabs", offsetof(GPool, slabs_)),
      entry("Pool.slab_count", offsetof(GPool, slab_count_)),
      entry("Slab.size", sizeof(GPool::Slab)),
      entry("Slab.records", offsetof(GPool::Slab, records)),
      entry("Slab.carved", offsetof(GPool::Slab, carved)),

      entry("G.size", sizeof(G)),
      entry("G.saved_sp", offsetof(G, saved_sp)),
      entry("G.stack", offsetof(G, stack)),
      entry("G.body", offsetof(G, body)),
      entry("G.extra", offsetof(G, extra)),
      entry("G.id", offsetof(G, id)),
      entry("G.creator", offsetof(G, creator)),
      entry("G.state", offsetof(G, state)),
      entry("G.wait_reason", offsetof(G, wait_reason)),
      entry("G.bound", offsetof(G, bound)),
      entry("GExtra.name", offsetof(GExtra, name)),
      entry("Stack.low", offsetof(stack::Stack, low)),

      entry("M.older", offsetof(M, older)),
      entry("M.number", offsetof(M, number)),
      entry("M.tid", offsetof(M, os) + offsetof(M::OsThread, tid)),
      entry("M.p", offsetof(M, p)),
      entry("M.current", offsetof(M, current)),
      entry("M.searching", offsetof(M, searching)),
      entry("M.listed", offsetof(M, rest) + offsetof(M::Rest, listed)),
      entry("M.in_poller", offsetof(M, rest) + offsetof(M::Rest, in_poller)),
      entry("M.blocking_calls", offsetof(M, blocking_calls)),
      entry("M.never_ran", offsetof(M, never_ran)),
      entry("M.has_ended", offsetof(M, has_ended)),

      entry("P.index", offsetof(P, index)),
      entry("P.state", offsetof(P, state)),
      entry("P.holder", offsetof(P, holder)),
      entry("P.next", offsetof(P, queue) + offsetof(RunQueue, next) + offsetof(NextSlot, slot_)),
      entry("P.ring", offsetof(P, queue) + offsetof(RunQueue, ring_)),
      entry("P.ring_slots", RunQueue::kSlots),
      entry("P.head", offsetof(P, queue) + offsetof(RunQueue, head_)),
      entry("P.tail", offsetof(P, queue) + offsetof(RunQueue, tail_)),
      entry("P.reserved_first", offsetof(P, queue) + offsetof(RunQueue, reserved_first_)),
      entry("P.reserved_end", offsetof(P, queue) + offsetof(RunQueue, reserved_end_)),
      entry("P.inbox", offsetof(P, inbox) + offsetof(Inbox, places_)),
      entry("P.inbox_places", Inbox::kPlaces),
      entry("P.inbox_first", offsetof(P, inbox) + offsetof(Inbox, first_)),
      entry("P.inbox_end", offsetof(P, inbox) + offsetof(Inbox, end_)),

      entry("GState.free", static_cast<std::size_t>(GState::free)),
      entry("GState.fresh", static_cast<std::size_t>(GState::fresh)),
      entry("GState.runnable", static_cast<std::size_t>(GState::runnable)),
      entry("GState.running", static_cast<std::size_t>(GState::running)),
      entry("GState.waiting", static_cast<std::size_t>(GState::waiting)),
      entry("GState.ended", static_cast<std::size_t>(GState::ended)),
      entry("PState.idle", static_cast<std::size_t>(PState::idle)),
      entry("PState.running", static_cast<std::size_t>(PState::running)),
      entry("PState.stopped", static_cast<std::size_t>(PState::stopped)),
      entry("PState.unused", static_cast<std::size_t>(PState::unused)),
#ifdef __GLIBCXX__
      // libstdc++'s strings begin with where their text is and how long it is.
      entry("String.text", 0),
      entry("String.length", sizeof(void*)),
#endif
  };

  // The parts, the reasons, and the entry without a name that ends the table.
  struct Table {
    LayoutEntry entries[kParts.size() + kWaitReasons + 1];
  };
  static constexpr Table table() {
    Table all{};
    std::size_t count = 0;
    for (const LayoutEntry& part : kParts) all.entries[count++] = part;
    for (std::size_t i = 0; i < kWaitReasons; ++i)
      all.entries[count++] = entry("WaitReason.", i, text(static_cast<WaitReason>(i)));
    return all;
  }
};

// The names that the script looks for. A shared library keeps them when it is stripped.
extern "C" {
MAGPIE_API extern const Layout::Table magpie_layout;
[[gnu::used]] constinit const Layout::Table magpie_layout = Layout::table();
MAGPIE_API extern Runtime* const* const magpie_runtime;
[[gnu::used]] constinit Runtime* const* const magpie_runtime = &runtime;
}

const LayoutEntry* layout_for_debuggers() { return magpie_layout.entries; }

}  // namespace magpie::sched
