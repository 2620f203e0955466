#include <algorithm>

#include <magpie/detail/caught.h>
#include <magpie/detail/division.h>

#include "base/clock.h"
#include "trace/clock.h"

namespace magpie::detail {
namespace {

// A piece shorter than this is too short: starting, joining and timing it costs about a tenth of a
// microsecond.
constexpr std::int64_t kShortNs = 10'000;
// One longer than this is too long: an idle P may have to wait for its end.
constexpr std::int64_t kLongNs = 100'000;

// Even if all iterations seem trivial there are so many pieces for each P: later ones may be
// longer.
constexpr std::uint64_t kPiecesPerProc = 8;

// A piece of fewer ticks certainly took less than kShortNs. Possibly much less.
std::uint64_t certainly_short_ticks() {
#if defined(__x86_64__)
  return kShortNs / 2;  // no counter is slower than 500 MHz
#elif defined(__aarch64__)
  std::uint64_t per_second;
  asm("mrs %0, cntfrq_el0" : "=r"(per_second));
  return per_second / (1'000'000'000 / kShortNs);
#endif
}

// Of each P.
std::uint64_t share_of(std::uint64_t iterations) {
  return iterations / static_cast<std::uint64_t>(std::max(procs(), 1));
}

std::uint64_t largest_grain(std::uint64_t iterations) {
  return std::max<std::uint64_t>(share_of(iterations) / kPiecesPerProc, 1);
}

}  // namespace

LoopControl::LoopControl(std::uint64_t iterations, std::uint64_t grain) noexcept
    : halved_above_(share_of(iterations) / 2),
      largest_grain_(grain != 0 ? grain : largest_grain(iterations)),
      learns_(grain == 0),
      loop_begun_ns_(learns_ ? base::now_ns() : 0),
      loop_begun_ticks_(learns_ ? trace::ticks_now() : 0),
      grain_(grain != 0 ? grain : 1) {}

std::uint64_t LoopControl::begin_piece() const noexcept { return learns_ ? trace::ticks_now() : 0; }

void LoopControl::end_piece(std::uint64_t iterations, std::uint64_t begun_ticks) noexcept {
  if (!learns_) return;
  std::uint64_t now_ticks = trace::ticks_now();
  std::uint64_t took_ticks = now_ticks - begun_ticks;
  std::uint64_t grain = grain_.load(std::memory_order_relaxed);
  // Most pieces that are too short are so by far. Only for the others the clock is read. A double:
  // if the counters of two CPUs disagree, the result is nonsense, but defined.
  double took_ns = 0;
  std::uint64_t short_ticks = certainly_short_ticks();
  if (took_ticks >= short_ticks) {
    double ns = static_cast<double>(base::now_ns() - loop_begun_ns_);
    double ticks = static_cast<double>(now_ticks - loop_begun_ticks_);
    took_ns = ns * (static_cast<double>(took_ticks) / ticks);
  }
  std::uint64_t better = grain;
  if (took_ns < double{kShortNs}) {
    // Twice the piece, not twice the grain: others may have learnt the same at this moment.
    std::uint64_t factor = took_ticks < short_ticks / 8 ? 8 : 2;
    better = std::max(grain, std::min(factor * iterations, largest_grain_));
  } else if (took_ns > double{kLongNs}) {
    double share = double{kShortNs} / took_ns;
    auto fitting = static_cast<std::uint64_t>(static_cast<double>(iterations) * share);
    better = std::min(grain, std::max<std::uint64_t>(fitting, 1));
  }
  // Written only when it changes: every piece reads it.
  if (better != grain) grain_.store(better, std::memory_order_relaxed);
}

void LoopControl::fail() noexcept {
  if (!failed_.exchange(true, std::memory_order_relaxed)) failure_ = caught();
}

}  // namespace magpie::detail
