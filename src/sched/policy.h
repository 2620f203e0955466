// policy.h: the decisions of the scheduler, without its queues, threads and atomics.
//
// Each function takes numbers and returns a decision. The scheduler calls them where it decides;
// `magpie lab` calls the same functions in a simulation (src/lab), with alternatives beside them.
// So a figure of the lab speaks of the product's policy and not of a copy. docs/design/stealing.md
// says what the lab found, docs/fairness.md what each line is for.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace magpie::sched::policy {

// ---- the ring of a P (run_queue.h)

inline constexpr std::uint64_t kRingSlots = 256;
inline constexpr std::uint64_t kReserve = 16;
inline constexpr std::uint64_t kReserveShare = 8;

// A thief takes the oldest half, rounded up, of what stands in the victim's ring.
constexpr std::uint64_t to_steal(std::uint64_t waiting) { return waiting - waiting / 2; }

// The owner of a full ring spills the oldest half to the global queue, together with the goroutine
// that found no room. `room` is what is left in the batch after the reserved ones.
constexpr std::uint64_t to_spill(std::uint64_t waiting, std::uint64_t room) {
  std::uint64_t count = waiting / 2;
  if (count > room) count = room;
  return count;
}

// The owner sets the oldest aside for itself, a batch at a time. `waiting` is not 0.
constexpr std::uint64_t to_reserve(std::uint64_t waiting, std::uint64_t share, std::uint64_t most) {
  std::uint64_t count = waiting / share;
  if (count > most) count = most;
  if (count == 0) count = 1;
  return count;
}

// ---- turns of a P (find_work.cc)

inline constexpr std::int32_t kLookEvery = 61;  // ticks; prime: does not fall in step with programs
// A chain of goroutines from runnext reads the clock after kTurnsPerClock turns. These turns count
// as kTicksPerClock ticks.
inline constexpr std::int32_t kTurnsPerClock = 64;
inline constexpr std::int32_t kTicksPerClock = 16;
// A chain is a series of goroutines that each wake the next one. After this long it gives way.
inline constexpr std::int64_t kLongestChainNs = 1'000'000;
inline constexpr std::int64_t kLongestOverrunNs = 3'000'000;

// Ends the chains of a P, so that they share its time and not its turns. A chain of short steps
// looks at the clock often, and ends in time. One of long steps runs until sysmon asks for its end,
// which comes late. What it ran over its time, the chain that follows it at once may have too.
class ChainClock {
 public:
  enum class Because : std::uint8_t { turns_passed, sysmon_asks };
  enum class Verdict : std::uint8_t { goes_on, gives_way };

  // The chain belongs to this tick of its P.
  [[nodiscard]] constexpr Verdict look(std::uint64_t tick, std::int64_t now_ns, Because because) {
    if (tick != tick_) begin(tick, now_ns);
    std::int64_t passed = now_ns - since_ns_;
    // Where the beginning is known, sysmon's request only makes the P look.
    bool must_end = because == Because::sysmon_asks && !knows_beginning_;
    if (!must_end && passed < most_ns_) return Verdict::goes_on;
    most_ns_ = kLongestChainNs + std::clamp<std::int64_t>(passed - most_ns_, 0, kLongestOverrunNs);
    ended_tick_ = tick;
    ended_ns_ = now_ns;
    return Verdict::gives_way;
  }

 private:
  constexpr void begin(std::uint64_t tick, std::int64_t now_ns) {
    tick_ = tick;
    knows_beginning_ = ended_ns_ != 0 && tick == ended_tick_ + 1;
    since_ns_ = knows_beginning_ ? ended_ns_ : now_ns;
    if (!knows_beginning_) most_ns_ = kLongestChainNs;
  }

  std::uint64_t tick_ = 0;
  std::int64_t since_ns_ = 0;
  std::int64_t most_ns_ = kLongestChainNs;
  bool knows_beginning_ = false;
  std::uint64_t ended_tick_ = 0;  // of the last chain that gave way
  std::int64_t ended_ns_ = 0;
};

inline constexpr std::uint32_t kInboxPlaces = 32;

// Ticks to the next look after a turn of the inbox: it has every second turn while it holds
// goroutines or could be filled with urgent ones.
constexpr std::int32_t ticks_after_inbox(bool both_are_empty) {
  return both_are_empty ? kLookEvery : 2;
}

// How many a P that has work of its own takes from the global queue at a look. An idle P takes them
// itself; otherwise the inbox keeps room for the network.
constexpr std::size_t most_at_look(bool others_take_them) {
  return others_take_them ? 2 : kInboxPlaces * 3 / 4;
}

// Goroutines that nobody of this P woke go to the ring, not to the inbox, if others could run them.
template <class View>
constexpr bool others_could_run(const View& now) {
  return now.idle != 0 || now.searching != 0;
}

// ---- the global queue (global_queue.cc)

inline constexpr std::int64_t kSparedNs = 70'000'000;  // a usual line is spared for this long

// A P takes from the shard of its own node until the oldest of another shard has waited so much
// longer. The one with the lowest rank goes first; the rank of another's shard is its oldest time.
inline constexpr std::int64_t kShardLeadNs = 10'000'000;
constexpr std::int64_t rank_of_own_shard(std::int64_t oldest_ns) {
  return oldest_ns - kShardLeadNs;
}

// The share of a line that one of `procs` Ps takes.
constexpr std::size_t share_of_line(std::size_t size, std::size_t procs) {
  return std::min(size, size / procs + 1);
}

// ---- stealing (steal.cc)

inline constexpr int kStealRounds = 4;
inline constexpr std::int64_t kPatienceNs = 3'000;
inline constexpr std::size_t kFewWoken = 16;

// A thief waits once before it takes from a ring whose oldest goroutine was woken, if the ring
// holds only a few: woken goroutines come one by one, and each would run for a single step.
constexpr bool is_few(std::size_t waiting) { return waiting < kFewWoken; }

// Only in the last round a thief looks at runnext. It takes the goroutine there if it is still
// there after kPatienceNs, in which the victim took nothing from the slot and woke no thread.
constexpr bool looks_at_runnext(int round) { return round == kStealRounds - 1; }
constexpr bool may_steal_runnext(bool victim_took_from_it, bool victim_is_waking) {
  return !victim_took_from_it && !victim_is_waking;
}

// ---- distance (victims.h, rest/idle.h)

// From near to far: of the same core, under the same last-level cache, of the same node, elsewhere.
enum class Distance : std::uint8_t { sibling, cache, node, far };

inline constexpr std::uint32_t kLooksPerDistance = 16;
inline constexpr std::uint32_t kDetourEvery = 16;  // searches
inline constexpr std::uint32_t kDetourLooks = 4;
inline constexpr std::size_t kDetourLeast = 4;  // goroutines

// How far a thief goes in a round. Work that is far has often found a nearer thief by the last one.
constexpr Distance farthest(int round) {
  if (round == kStealRounds - 1) return Distance::far;
  return round == 0 ? Distance::cache : Distance::node;
}

// Load counts for more than distance: near work that never ends must not keep a thief from Ps that
// drown. So one of its searches now and then begins with a detour: a few looks at far Ps. A far P
// that holds many more goroutines than a P near by is robbed, and then the next search begins with
// a detour too.
constexpr bool is_worth_a_detour(std::size_t waiting, std::size_t waiting_near) {
  return waiting >= kDetourLeast + 2 * waiting_near;
}
struct Detours {
  std::uint32_t searches = 0;
  bool has_paid = false;

  constexpr bool begins_with_one() { return has_paid || ++searches % kDetourEvery == 0; }
};

// ---- searching and sleeping (rest/search.h, find_work.cc)

inline constexpr std::uint32_t kSpinLeast = 8;  // rounds; one is about half a microsecond
inline constexpr std::uint32_t kSpinMost = 64;
inline constexpr int kPausesPerRound = 32;
inline constexpr std::uint32_t kLooksPerSpin = 16;  // Ps that a searcher looks at in such a round

// A View has two numbers: the Ms that are `searching`, and the Ps that are `idle`.

// Work was published: a searcher is started if there is none and a P is idle.
template <class View>
constexpr bool needs_searcher(const View& now) {
  return now.searching == 0 && now.idle != 0;
}

// An M with a P and no work may search: at most half as many search as Ps are busy.
template <class View>
constexpr bool may_search(const View& now, std::uint32_t procs) {
  return 2 * now.searching < procs - now.idle;
}

// A searcher goes on for about as long as it has paid before.
constexpr std::uint32_t budget_after_success(std::uint32_t rounds) {
  return std::min(rounds * 2, kSpinMost);
}
constexpr std::uint32_t budget_after_failure(std::uint32_t rounds) {
  return std::max(rounds / 2, kSpinLeast);
}

// ---- timers (rest/fire.cc)

inline constexpr std::size_t kTimersAtOnce = 64;
inline constexpr std::uint32_t kTimerLooks = 16;  // Ps at whose timers a search looks

}  // namespace magpie::sched::policy
