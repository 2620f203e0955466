#include "sched/run/wait_profile.h"

#include <unwind.h>

#include <algorithm>
#include <utility>

#include "base/guard.h"

namespace magpie::sched {
namespace {

constexpr std::uint32_t kOwnFrames = 1;  // note() itself

struct Walk {
  WaitProfile::Entry& found;
  std::uint32_t skip = kOwnFrames;
};

_Unwind_Reason_Code add_frame(_Unwind_Context* context, void* argument) {
  auto& walk = *static_cast<Walk*>(argument);
  std::uintptr_t pc = _Unwind_GetIP(context);
  if (pc == 0 || walk.found.frames == WaitProfile::kMostFrames) return _URC_END_OF_STACK;
  if (walk.skip != 0) {
    --walk.skip;
  } else {
    walk.found.stack[walk.found.frames++] = pc;
  }
  return _URC_NO_REASON;
}

bool are_alike(const WaitProfile::Entry& a, const WaitProfile::Entry& b) {
  return a.reason == b.reason && a.frames == b.frames &&
         std::equal(a.stack.begin(), a.stack.begin() + a.frames, b.stack.begin());
}

std::size_t hash_of(const WaitProfile::Entry& entry) {
  std::uint64_t hash = static_cast<std::uint64_t>(entry.reason) + 1;
  for (std::uint32_t i = 0; i < entry.frames; ++i)
    hash = (hash ^ entry.stack[i]) * 0x9E3779B97F4A7C15u + (hash >> 29);
  return static_cast<std::size_t>(hash >> 17);
}

}  // namespace

constinit WaitProfile wait_profile;

bool WaitProfile::start(std::int64_t period_ns) {
  stop();
  base::PageArray<Entry> fresh;
  if (!fresh.grow_to(kEntries)) return false;
  {
    base::Guard hold(lock_);
    std::swap(table_, fresh);
    lost_ = 0;
  }
  period_ns_.store(period_ns, base::relaxed);
  return true;
}

// Null: there is no room.
WaitProfile::Entry* WaitProfile::find_locked(const Entry& wanted) {
  if (table_.capacity() == 0) return nullptr;
  std::size_t at = hash_of(wanted);
  for (std::size_t i = 0; i < kTries; ++i) {
    Entry& entry = table_[(at + i) % kEntries];
    if (entry.frames == 0) {
      entry = wanted;
      return &entry;
    }
    if (are_alike(entry, wanted)) return &entry;
  }
  return nullptr;
}

[[gnu::noinline]] void WaitProfile::note(M* m, WaitReason reason, std::int64_t waited_ns) {
  auto period = static_cast<std::uint64_t>(period_ns_.load(base::relaxed));
  auto waited = static_cast<std::uint64_t>(std::max<std::int64_t>(waited_ns, 1));
  std::uint64_t stands_for = 1;
  if (waited < period) {
    std::uint64_t high = m->p->random.next(), low = m->p->random.next();
    if ((high << 32 | low) % period >= waited) return;
    stands_for = period / waited;
  }
  Entry wanted{};
  wanted.reason = reason;
  Walk walk{wanted};
  _Unwind_Backtrace(add_frame, &walk);
  if (wanted.frames == 0) return;
  base::Guard hold(lock_);
  if (Entry* entry = find_locked(wanted)) {
    entry->waits += stands_for;
    entry->waited_ns += waited * stands_for;
  } else {
    ++lost_;
  }
}

std::size_t WaitProfile::copy(std::size_t first, std::span<Entry> out) {
  base::Guard hold(lock_);
  std::size_t there = table_.capacity();
  std::size_t count = std::min(out.size(), there - std::min(first, there));
  std::copy_n(table_.data() + first, count, out.begin());
  return count;
}

std::uint64_t WaitProfile::lost() {
  base::Guard hold(lock_);
  return lost_;
}

}  // namespace magpie::sched
