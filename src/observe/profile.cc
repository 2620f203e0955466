#include <magpie/profile.h>

#include <array>
#include <cstdint>
#include <new>
#include <stdexcept>
#include <vector>

#include "observe/pprof.h"
#include "sched/entry.h"
#include "sched/run/wait_profile.h"

namespace magpie::profile {
namespace {

using sched::WaitProfile;
using sched::WaitReason;

bool is_lock(WaitReason reason) {
  switch (reason) {
    case WaitReason::mutex:
    case WaitReason::rw_mutex_read:
    case WaitReason::rw_mutex_write:
    case WaitReason::semaphore:
    case WaitReason::once:
      return true;
    default:
      return false;
  }
}

// A goroutine copies inside the runtime: it would hold others up if it were stopped with the lock.
std::size_t copy(std::size_t first, std::span<WaitProfile::Entry> out) {
  sched::Entry entry;
  return sched::wait_profile.copy(first, out);
}

}  // namespace

void start(const Options& options) {
  if (options.period.count() <= 0)
    throw std::invalid_argument("magpie: the period of a profile must be positive");
  bool started;
  {
    sched::Entry entry;
    started = sched::wait_profile.start(options.period.count());
  }
  if (!started) throw std::bad_alloc();
}

void stop() noexcept { sched::wait_profile.stop(); }

std::string pprof(Waits which) {
  constexpr observe::Pprof::Type kValues[] = {{"contentions", "count"}, {"delay", "nanoseconds"}};
  observe::Pprof profile(kValues, {"contentions", "count"}, 1);
  constexpr std::size_t kAtOnce = 32;
  std::vector<WaitProfile::Entry> some(kAtOnce);
  for (std::size_t first = 0;;) {
    std::size_t count = copy(first, some);
    if (count == 0) break;
    first += count;
    for (const WaitProfile::Entry& entry : std::span(some).first(count)) {
      if (entry.frames == 0 || (which == Waits::locks && !is_lock(entry.reason))) continue;
      profile.add_sample(std::span(entry.stack).first(entry.frames),
                         std::array{entry.waits, entry.waited_ns},
                         {"reason", sched::text(entry.reason)});
    }
  }
  if (std::uint64_t lost = sched::wait_profile.lost(); lost != 0)
    profile.add_comment(std::to_string(lost) + " waits found no room and are not here");
  return profile.finish();
}

}  // namespace magpie::profile
