#include "view/latency_probe.h"

#include <algorithm>
#include <mutex>
#include <system_error>
#include <utility>

#include <magpie/go.h>
#include <magpie/runtime.h>
#include <magpie/time.h>

namespace magpie::view {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

namespace {

constexpr milliseconds kShortestSleep(20), kLongestSleep(80);
constexpr auto kWatchedFor = std::chrono::seconds(60);  // Prometheus asks every 15 or 30 seconds

// Between the two, so that the probe is not in step with what the program does.
Clock::duration next_sleep(std::uint64_t& state) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  const auto span = static_cast<std::uint64_t>((kLongestSleep - kShortestSleep).count()) * 1000;
  return kShortestSleep + std::chrono::microseconds((state >> 33) % span);
}

}  // namespace

void Lateness::add(std::int64_t late_ns) {
  const auto bound = std::lower_bound(kBoundsNs.begin(), kBoundsNs.end(), late_ns);
  ++counts[static_cast<std::size_t>(bound - kBoundsNs.begin())];
  sum_ns += late_ns;
  max_ns = std::max(max_ns, late_ns);
}

struct LatencyProbe::Shared {
  Mutex mutex;
  // guarded by mutex
  Lateness lateness;
  Clock::time_point last_read;
  bool samples = false;  // there is a goroutine
  JoinHandle<void> sampler;
};

LatencyProbe::LatencyProbe() : shared_(std::make_shared<Shared>()) {}

// Waits for the goroutine, so that run() has none to drop. Outside of run() there is none.
LatencyProbe::~LatencyProbe() {
  over_.cancel();
  std::unique_lock lock(shared_->mutex);
  JoinHandle<void> sampler = std::move(shared_->sampler);
  lock.unlock();
  if (sampler.joinable() && goroutine_id() != 0) sampler.join();
}

Lateness LatencyProbe::read() {
  std::unique_lock lock(shared_->mutex);
  shared_->last_read = Clock::now();
  const Lateness seen = shared_->lateness;
  if (shared_->samples) return seen;
  shared_->samples = true;
  shared_->sampler = spawn({.name = "latency probe"},
                           [weak = std::weak_ptr(shared_), over = over_] { sample(weak, over); });
  return seen;
}

void LatencyProbe::sample(const std::weak_ptr<Shared>& weak, const Context& over) {
  std::uint64_t state = static_cast<std::uint64_t>(Clock::now().time_since_epoch().count());
  while (true) {
    const Clock::time_point due = Clock::now() + next_sleep(state);
    std::error_code error;
    if (!sleep_until(due, over, error)) return;
    const Clock::duration late = Clock::now() - due;
    const std::shared_ptr<Shared> shared = weak.lock();
    if (shared == nullptr) return;
    std::lock_guard lock(shared->mutex);
    shared->lateness.add(std::chrono::nanoseconds(late).count());
    if (Clock::now() - shared->last_read > kWatchedFor) {
      shared->samples = false;
      return;
    }
  }
}

}  // namespace magpie::view
