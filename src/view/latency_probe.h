// latency_probe.h: how long a goroutine that should run has to wait until it does.
//
// The scheduler keeps no histogram of that: it would cost two readings of the clock per switch.
// Instead, while somebody watches, a goroutine sleeps until random times, some twenty a second, and
// notes how late it runs. That is the time until the timer is seen, and the time in a queue. It is
// a sample of what any goroutine would have met at that moment.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

#include <magpie/context.h>
#include <magpie/mutex.h>

namespace magpie::view {

// A histogram. counts[i] is how many were above kBoundsNs[i - 1] and not above kBoundsNs[i]; the
// last is without an upper bound.
struct Lateness {
  static constexpr std::array<std::int64_t, 16> kBoundsNs = {
      10'000,      25'000,      50'000,      100'000,      250'000,    500'000,
      1'000'000,   2'500'000,   5'000'000,   10'000'000,   25'000'000, 50'000'000,
      100'000'000, 250'000'000, 500'000'000, 1'000'000'000};

  std::array<std::uint64_t, kBoundsNs.size() + 1> counts{};
  std::int64_t sum_ns = 0;
  std::int64_t max_ns = 0;

  void add(std::int64_t late_ns);
};

class LatencyProbe {
 public:
  LatencyProbe();
  ~LatencyProbe();  // the goroutine ends soon
  LatencyProbe(const LatencyProbe&) = delete;
  LatencyProbe& operator=(const LatencyProbe&) = delete;

  // What was seen so far. Starts the goroutine if there is none; it ends when nobody has read for a
  // while.
  Lateness read();

 private:
  struct Shared;
  static void sample(const std::weak_ptr<Shared>& weak, const Context& over);

  const Context over_ = Context::background().with_cancel();
  const std::shared_ptr<Shared> shared_;
};

}  // namespace magpie::view
