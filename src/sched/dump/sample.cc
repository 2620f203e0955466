#include "sched/dump/sample.h"

#include "context/unwind.h"
#include "sched/dump/fault_guard.h"

namespace magpie::sched {
namespace {

struct Taking {
  Frames& frames;
  std::uintptr_t skip_to;  // 0: begin now
};

bool note(void* taking, std::uintptr_t pc, std::uintptr_t) {
  auto& [frames, skip_to] = *static_cast<Taking*>(taking);
  if (skip_to != 0 && pc != skip_to) return true;
  skip_to = 0;
  frames.pcs[frames.count++] = pc;
  return frames.count < kMostFrames;
}

void walk(void* taking) { context::walk_here(note, taking); }

}  // namespace

[[gnu::noinline]] void take_frames(Frames& frames, std::uintptr_t from_pc) {
  frames.count = 0;
  if (from_pc == 0) from_pc = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
  Taking taking{frames, from_pc};
  (void)survives(walk, &taking);
}

bool Sample::answer(const ucontext_t& interrupted, std::uint64_t goroutine) {
  if (!move(kAsked, kAnswering)) return false;
  goroutine_ = goroutine;
  take_frames(frames_, context::registers_of(interrupted).pc);
  word_.store(kAnswered, base::release);  // [sample] with is_answered()
  return true;
}

}  // namespace magpie::sched
