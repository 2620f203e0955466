#include "sched/dump/snapshot.h"

#include <time.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>
#include <string>

#include <magpie/mutex.h>

#include "base/clock.h"
#include "base/lock.h"
#include "context/frame_walk.h"
#include "sched/current.h"
#include "sched/dump/age.h"
#include "sched/dump/fault_guard.h"
#include "sched/wait_object.h"

namespace magpie::sched {
namespace {

constexpr int kMostTries = 3;
constexpr std::int64_t kSnapshotWaitNs = 1'000'000'000;  // a busy machine takes its time
constexpr timespec kSnapshotNap{.tv_sec = 0, .tv_nsec = 50'000};

base::UncheckedLock one_at_a_time;  // for take()
Ages ages;                          // guarded by one_at_a_time

std::uint64_t hash_with(std::uint64_t a, std::uint64_t b) {
  a = (a ^ b) * 0x9E3779B97F4A7C15U;
  return a ^ (a >> 32);
}

bool is_mutex(WaitReason reason) {
  return reason == WaitReason::mutex || reason == WaitReason::once;
}

}  // namespace

// One goroutine.
struct Snapshot::Look {
  Look(Snapshot& its, G* whose) : snapshot(its), g(whose) {}

  Snapshot& snapshot;
  G* const g;
  std::uint64_t id = 0;
  GState state = GState::free;
  WaitReason reason = WaitReason::none;
  bool in_blocking_call = false;
  const void* object = nullptr;
  int descriptor = -1;
  std::uint64_t joined = 0;
  std::uintptr_t owner_at = 0;
  std::int64_t waited_ns = -1;
  std::uint64_t creator = 0;
  std::uintptr_t body = 0;
  int thread = 0;
  char name[Group::kMostName] = "";
  const char* no_stack = nullptr;
  bool is_steady = false;

  // of a parked one
  std::uintptr_t sp = 0, low = 0, top = 0;
  std::uint64_t key = 0;
  Frames frames;
  std::uint32_t slots[kMostFrames];  // where the return addresses are, above sp

  void read_record();
  void read_object();
  bool has_same_frames() const;
};

// A stack that was unwound.
struct Snapshot::Known {
  Known* next;
  std::uint64_t key;
  std::size_t count;
  std::uintptr_t pcs[kMostFrames];
  std::uint32_t slots[kMostFrames];
};

[[MAGPIE_READS_RACILY]] void Snapshot::Look::read_record() {
  id = g->id;
  state = g->state.load(base::relaxed);
  reason = g->reason();
  creator = g->creator;
  body = reinterpret_cast<std::uintptr_t>(g->body);
  read_name(*g, name);
}

[[MAGPIE_READS_RACILY]] void read_name([[maybe_unused]] const G& g,
                                       char (&name)[Group::kMostName]) {
  name[0] = '\0';
#if defined(__GLIBCXX__) && _GLIBCXX_USE_CXX11_ABI
  const GExtra* extra = g.extra;
  if (extra == nullptr) return;
  const char* text = *reinterpret_cast<const char* const*>(&extra->name);
  std::size_t length = reinterpret_cast<const std::size_t*>(&extra->name)[1];
  length = std::min(length, sizeof name - 1);
  for (std::size_t i = 0; i < length; ++i) name[i] = text[i];
  name[length] = '\0';
#endif
}

[[MAGPIE_READS_RACILY]] void Snapshot::Look::read_object() {
  object = wait_object_of(*g);
  if (object == nullptr) return;
  if (is_mutex(reason)) {
    auto* mutex = static_cast<const detail::MutexState*>(object);
    if (mutex->word.load(std::memory_order_relaxed) != 0) owner_at = mutex->locked_at;
  } else if (reason == WaitReason::join) {
    joined = static_cast<const G*>(object)->id;
  } else if (reason == WaitReason::io_read || reason == WaitReason::io_write) {
    descriptor = *static_cast<const int*>(object);
  }
}

[[MAGPIE_READS_RACILY]] bool Snapshot::Look::has_same_frames() const {
  for (std::size_t i = 1; i < frames.count; ++i) {
    if (slots[i] == 0) return true;  // unknown where it is
    if (*reinterpret_cast<std::uintptr_t*>(sp + slots[i]) != frames.pcs[i]) return false;
  }
  return true;
}

namespace {

struct Unwinding {
  Frames& frames;
  std::uint32_t* slots;
  std::uintptr_t first_sp, last_sp, top;
};

bool note_parked_frame(void* its, std::uintptr_t pc, std::uintptr_t sp) {
  auto& [frames, slots, first_sp, last_sp, top] = *static_cast<Unwinding*>(its);
  if (sp < last_sp || sp > top) return false;
  std::uintptr_t slot = frames.count == 0 ? 0 : context::return_slot_of(sp);
  slots[frames.count] = slot == 0 ? 0 : static_cast<std::uint32_t>(slot - first_sp);
  frames.pcs[frames.count++] = pc;
  last_sp = sp;
  return frames.count < kMostFrames;
}

// Two return addresses near the end of a parked stack, by frame pointers, which the library has.
[[MAGPIE_READS_RACILY]] std::uint64_t key_of(const context::Registers& registers,
                                             std::uintptr_t top) {
  std::uint64_t key = hash_with(registers.pc, top - registers.sp);
  std::uintptr_t frame = registers.frame;
  for (int i = 0; i < 4; ++i) {
    if (frame < registers.sp || frame + 16 > top || frame % 8 != 0) break;
    auto* words = reinterpret_cast<std::uintptr_t*>(frame);
    key = hash_with(key, words[1]);
    frame = words[0];
  }
  return key;
}

}  // namespace

const Snapshot::Known* Snapshot::find_known(const Look& look) const {
  for (const Known* known = known_[look.key % kBuckets]; known != nullptr; known = known->next) {
    if (known->key == look.key) return known;
  }
  return nullptr;
}

void Snapshot::unwind(Look& look) {
  context::Registers registers = context::registers_of(reinterpret_cast<void*>(look.sp));
  look.key = key_of(registers, look.top);
  look.frames.count = 0;
  if (const Known* known = find_known(look)) {
    look.frames.count = known->count;
    std::copy_n(known->pcs, known->count, look.frames.pcs);
    std::copy_n(known->slots, known->count, look.slots);
    if (look.slots[known->count - 1] != 0 && look.has_same_frames()) return;
    look.frames.count = 0;
  }
  Unwinding unwinding{look.frames, look.slots, look.sp, look.sp, look.top};
  context::walk_from(registers, note_parked_frame, &unwinding);
}

// May fault at any point.
[[MAGPIE_READS_RACILY]] void Snapshot::look_at_parked(void* looking) {
  Look& look = *static_cast<Look*>(looking);
  const G& g = *look.g;
  look.read_record();
  const stack::Stack* stack = g.stack;
  void* saved = g.saved_sp;
  if (stack == nullptr || g.bound) return;
  look.sp = reinterpret_cast<std::uintptr_t>(saved);
  look.low = reinterpret_cast<std::uintptr_t>(stack->low);
  look.top = reinterpret_cast<std::uintptr_t>(stack->top());
  if (look.sp < look.low || look.sp >= look.top || look.sp % 8 != 0) return;
  if (look.state == GState::waiting && look.reason == WaitReason::join_in_place) {
    look.owner_at = look.top - 1;  // the goroutine that it runs is on the same stack
    look.no_stack = "it runs the other goroutine itself, on its own stack";
    look.is_steady = true;
    return;
  }
  look.snapshot.unwind(look);
  if (look.state == GState::waiting) look.read_object();
  look.is_steady = g.id == look.id && g.state.load(base::acquire) == look.state &&
                   g.saved_sp == saved && !g.bound && look.has_same_frames();
}

// Goroutines that look_at_running() has seen are not looked at again, whatever they do by now. One
// that did not run then and runs now has no stack that stands still.
void Snapshot::look_at(G* g) {
  Look look(*this, g);
  for (int tries = 0; tries < kMostTries && !look.is_steady; ++tries) {
    GState state = g->state.load(base::acquire);
    if (state == GState::free || state == GState::ended) return;
    if (state == GState::fresh || state == GState::running || g->bound) {
      look.is_steady = survives([](void* its) { static_cast<Look*>(its)->read_record(); }, &look);
      look.no_stack = state == GState::fresh ? "it has not run yet" : "it has just begun to run";
    } else {
      look.no_stack = nullptr;
      if (!survives(look_at_parked, &look)) look.is_steady = false;
    }
  }
  if (std::binary_search(seen_running_, seen_running_ + seen_count_, look.id)) return;
  if (!look.is_steady) {
    look.frames.count = 0;
    look.object = nullptr;
    look.owner_at = look.joined = 0;
    look.no_stack = "it changes too quickly";
  } else if (look.state == GState::waiting) {
    look.waited_ns = ages.look_at(*g);
    if (look.owner_at != 0 || look.joined != 0)
      waits_.add({look.id, look.reason, look.object, look.owner_at, look.joined, 0, false, false},
                 arena_);
  }
  if (look.id != 0) add(look);
}

void Snapshot::look_at_running(Asks asks) {
  M* me = current_m();
  if (asks == Asks::running_threads) {
    runtime->threads.for_each([&](M* m) {
      if (m == me || m->current == nullptr || m->stopped_at.load(base::relaxed) != nullptr) return;
      if (m->sample.ask() && !runtime->preemption.send(m)) m->sample.close();  // it has ended
    });
  }
  std::size_t threads = 0;
  runtime->threads.for_each([&](M*) { ++threads; });
  seen_running_ = arena_.make<std::uint64_t>(threads);
  if (seen_running_ == nullptr) threads = 0;
  const std::int64_t until_ns = base::now_ns() + kSnapshotWaitNs;
  runtime->threads.for_each([&](M* m) {
    G* g = m->current;
    if (g == nullptr) return;
    Look look(*this, g);
    if (!survives([](void* its) { static_cast<Look*>(its)->read_record(); }, &look)) return;
    look.thread = m->os.tid.load(base::relaxed);
    look.in_blocking_call = m != me && m->is_in_blocking_call();  // mine is this dump
    look.frames.count = 0;
    if (look.state == GState::free || look.state == GState::ended) return;
    if (const ucontext_t* stopped = m->stopped_at.load(base::acquire)) {  // with on_stop()
      look.reason = WaitReason::none;
      auto registers = context::registers_of(*stopped);
      look.sp = registers.sp;
      look.top = ~std::uintptr_t{0};
      struct From {
        context::Registers registers;
        Unwinding unwinding;
      } from{registers, {look.frames, look.slots, look.sp, look.sp, look.top}};
      (void)survives(
          [](void* its) {
            auto& mine = *static_cast<From*>(its);
            context::walk_from(mine.registers, note_parked_frame, &mine.unwinding);
          },
          &from);
    } else if (m == me) {
      take_frames(look.frames, 0);
    } else if (asks == Asks::running_threads) {
      while (m->sample.is_pending() && base::now_ns() < until_ns) nanosleep(&kSnapshotNap, nullptr);
      if (m->sample.is_answered() && m->sample.goroutine() == look.id) {
        look.frames.count = m->sample.frames().count;
        std::copy_n(m->sample.frames().pcs, look.frames.count, look.frames.pcs);
      }
      m->sample.close();
    }
    if (look.state == GState::waiting) look.waited_ns = ages.look_at(*g);
    if (look.frames.count == 0) look.no_stack = "its thread does not answer";
    // A goroutine that changed its thread meanwhile is met twice.
    auto* place = std::lower_bound(seen_running_, seen_running_ + seen_count_, look.id);
    if (place != seen_running_ + seen_count_ && *place == look.id) return;
    if (seen_count_ < threads) {
      std::copy_backward(place, seen_running_ + seen_count_, seen_running_ + seen_count_ + 1);
      *place = look.id;
      ++seen_count_;
    }
    add(look);
  });
}

void Snapshot::add(const Look& look) {
  ++goroutines_;
  const Frames& frames = look.frames;
  std::uint64_t hash = hash_with(static_cast<std::uint64_t>(look.state),
                                 hash_with(static_cast<std::uint64_t>(look.reason), look.body));
  for (std::size_t i = 0; i < frames.count; ++i) hash = hash_with(hash, frames.pcs[i]);
  Group** bucket = &buckets_[hash % kBuckets];
  Group* group = folding_ == Folding::yes ? *bucket : nullptr;
  auto is_alike = [&](const Group& its) {
    return its.state == look.state && its.reason == look.reason && its.body == look.body &&
           its.in_blocking_call == look.in_blocking_call && its.no_stack == look.no_stack &&
           its.frames.count == frames.count &&
           std::equal(frames.pcs, frames.pcs + frames.count, its.frames.pcs) &&
           std::strcmp(its.name, look.name) == 0;
  };
  while (group != nullptr && !is_alike(*group)) group = group->next_in_bucket;
  if (group == nullptr) {
    group = arena_.make<Group>();
    if (group == nullptr) return;
    group->state = look.state;
    group->reason = look.reason;
    group->in_blocking_call = look.in_blocking_call;
    group->object = look.object;
    group->descriptor = look.descriptor;
    group->joined = look.joined;
    group->creator = look.creator;
    group->body = look.body;
    group->thread = look.thread;
    group->no_stack = look.no_stack;
    std::memcpy(group->name, look.name, sizeof look.name);
    group->frames.count = frames.count;
    std::copy_n(frames.pcs, frames.count, group->frames.pcs);
    group->next_in_bucket = *bucket;
    *bucket = group;
    group->next = first_;
    first_ = group;
    ++groups_;
    bool was_unwound = look.key != 0 && frames.count != 0;
    Known* known = was_unwound && find_known(look) == nullptr ? arena_.make<Known>() : nullptr;
    if (known != nullptr) {
      known->key = look.key;
      known->count = frames.count;
      std::copy_n(frames.pcs, frames.count, known->pcs);
      std::copy_n(look.slots, frames.count, known->slots);
      known->next = known_[look.key % kBuckets];
      known_[look.key % kBuckets] = known;
    }
  }
  if (group->count < Group::kMostIds) group->ids[group->count] = look.id;
  ++group->count;
  group->has_different_objects |= group->object != look.object;
  if (group->count == 1 || look.waited_ns > group->waited_ns) {
    group->waited_ns = look.waited_ns;
    group->longest = look.id;
  }
}

void Snapshot::list() {
  records_.list(arena_);
  has_list_ = true;
}

void Snapshot::take(Folding folding, Asks asks) {
  if (!has_list_) list();  // before the lock: a goroutine may not come back from it
  std::lock_guard hold(one_at_a_time);
  folding_ = folding;
  buckets_ = arena_.make<Group*>(kBuckets);  // new mappings are zero
  known_ = arena_.make<Known*>(kBuckets);
  if (buckets_ == nullptr || known_ == nullptr) return;
  FaultHandling handling;
  ages.begin_look(base::now_ns());
  look_at_running(asks);
  records_.for_each([this](G* g) { look_at(g); });
  waits_.resolve(records_);
  sort();
}

bool take_sample(Frames& frames, M* m, std::uint64_t goroutine, std::int64_t until_ns) {
  std::lock_guard hold(one_at_a_time);
  frames.count = 0;
  if (!m->sample.ask()) return false;
  if (runtime->preemption.send(m)) {
    while (m->sample.is_pending() && base::now_ns() < until_ns) nanosleep(&kSnapshotNap, nullptr);
    if (m->sample.is_answered() && m->sample.goroutine() == goroutine) {
      frames.count = m->sample.frames().count;
      std::copy_n(m->sample.frames().pcs, frames.count, frames.pcs);
    }
  }
  m->sample.close();
  return frames.count != 0;
}

void forget_dumps() { new (&one_at_a_time) base::UncheckedLock; }

// The largest first, and the oldest of equals.
void Snapshot::sort() {
  sorted_ = arena_.make<Group*>(groups_ + 1);
  if (sorted_ == nullptr) {
    groups_ = 0;
    return;
  }
  std::size_t i = 0;
  for (Group* group = first_; group != nullptr; group = group->next) sorted_[i++] = group;
  std::sort(sorted_, sorted_ + groups_, [](const Group* a, const Group* b) {
    return a->count != b->count ? a->count > b->count : a->ids[0] < b->ids[0];
  });
}

}  // namespace magpie::sched
