// container.cc: what a program may use of its machine, and a warning when a quota stops it.
//
// docs/guide/containers.md shows parts of this program.
#include <magpie/magpie.h>

#include <chrono>
#include <cstdint>
#include <cstdio>

namespace {

void show_limits() {
  const magpie::Stats now = magpie::stats();
  std::printf("%d CPUs, %d Ps, ", now.cpus, magpie::procs());
  if (now.cpu_quota > 0) {
    std::printf("a quota of %.2f CPUs\n", now.cpu_quota);
  } else {
    std::printf("no quota\n");
  }
}

// Warns when a tenth of the quota's periods or more ended early since the last call.
class QuotaWatch {
 public:
  void look() {
    const magpie::Stats now = magpie::stats();
    const std::uint64_t periods = now.quota_periods - periods_;
    const std::uint64_t throttled = now.throttled_periods - throttled_;
    periods_ = now.quota_periods;
    throttled_ = now.throttled_periods;
    if (throttled == 0 || throttled * 10 < periods) return;
    std::fprintf(stderr, "throttled in %llu of %llu periods: %d Ps, a quota of %.2f CPUs\n",
                 static_cast<unsigned long long>(throttled),
                 static_cast<unsigned long long>(periods), magpie::procs(), now.cpu_quota);
  }

 private:
  std::uint64_t periods_ = 0, throttled_ = 0;
};

void compute_for(std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
  }
}

}  // namespace

int main() {
  return magpie::run([] {
    show_limits();
    magpie::TaskGroup work;
    for (int i = 0; i < 4 * magpie::procs(); ++i)
      work.go([] { compute_for(std::chrono::milliseconds(400)); });

    QuotaWatch watch;
    for (int i = 0; i < 4; ++i) {
      magpie::sleep_for(std::chrono::milliseconds(400));
      watch.look();
    }
    work.wait();
    watch.look();
    show_limits();
    const magpie::Stats now = magpie::stats();
    const bool right = now.cpus >= 1 && now.throttled_periods <= now.quota_periods;
    return right && (now.cpu_quota > 0 || now.quota_periods == 0) ? 0 : 1;
  });
}
