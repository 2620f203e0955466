#include <algorithm>

#include <magpie/detail/caught.h>
#include <magpie/detail/division.h>

#include "base/clock.h"

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

std::uint64_t largest_grain(std::uint64_t iterations) {
  auto ps = static_cast<std::uint64_t>(std::max(procs(), 1));
  return std::max<std::uint64_t>(iterations / (kPiecesPerProc * ps), 1);
}

}  // namespace

LoopControl::LoopControl(std::uint64_t iterations, std::uint64_t grain) noexcept
    : largest_grain_(grain != 0 ? grain : largest_grain(iterations)),
      learns_(grain == 0),
      grain_(grain != 0 ? grain : 1) {}

std::int64_t LoopControl::begin_piece() const noexcept { return learns_ ? base::now_ns() : 0; }

void LoopControl::end_piece(std::uint64_t iterations, std::int64_t begun_ns) noexcept {
  if (!learns_) return;
  std::int64_t took_ns = base::now_ns() - begun_ns;
  std::uint64_t grain = grain_.load(std::memory_order_relaxed);
  std::uint64_t better = grain;
  if (took_ns < kShortNs) {
    // Twice the piece, not twice the grain: others may have learnt the same at this moment.
    better = std::max(grain, std::min(2 * iterations, largest_grain_));
  } else if (took_ns > kLongNs) {
    double share = static_cast<double>(kShortNs) / static_cast<double>(took_ns);
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
