#include "load.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <thread>

#include <magpie/magpie.h>

namespace demo {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using Seconds = std::chrono::duration<double>;

constexpr auto kStealFor = milliseconds(2500);
constexpr auto kSpillFor = milliseconds(2000);
constexpr auto kResizeFor = milliseconds(2400);
constexpr auto kHoldFor = milliseconds(700);
constexpr auto kIdleFor = milliseconds(1000);
constexpr auto kHurryAfter = std::chrono::seconds(11);  // on a slow or busy machine

std::int64_t cpu_time_ns() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

// Work that the compiler cannot skip.
void iterate(std::int64_t times) {
  std::uint64_t value = 88172645463325252;
  for (std::int64_t i = 0; i < times; ++i) {
    value ^= value << 13;
    value ^= value >> 7;
    value ^= value << 17;
  }
  asm volatile("" : : "r"(value));
}

class Work {
 public:
  explicit Work(const Progress& progress) : progress_(progress) {
    constexpr std::int64_t kSample = 2'000'000;
    std::int64_t before = cpu_time_ns();
    iterate(kSample);
    per_us_ = static_cast<double>(kSample) * 1000 /
              static_cast<double>(std::max<std::int64_t>(1, cpu_time_ns() - before));
  }

  // Computes, with no call into the runtime, for about so long if it has a CPU for itself.
  void compute_us(double us) const {
    if (!must_hurry()) iterate(static_cast<std::int64_t>(us * per_us_));
  }

  bool must_hurry() const { return progress_.cancel || Clock::now() > hurry_at_; }

 private:
  const Progress& progress_;
  const Clock::time_point hurry_at_ = Clock::now() + kHurryAfter;
  double per_us_;
};

// Lengths from 1/8 to 15/8 of the mean, the same in every run.
class Lengths {
 public:
  explicit Lengths(double mean_us) : mean_us_(mean_us) {}
  double next_us() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return mean_us_ * (0.125 + 1.75 * static_cast<double>(state_ >> 40) / (1 << 24));
  }

 private:
  double mean_us_;
  std::uint64_t state_ = 42;
};

// Wave after wave of goroutines that one goroutine starts and waits for.
void run_waves(const Work& work, Clock::duration time, int count, double mean_us, Outcome& out) {
  Lengths lengths(mean_us);
  std::atomic<std::int64_t> work_ns = 0;
  auto start = Clock::now();
  while (Clock::now() - start < time && !work.must_hurry()) {
    magpie::WaitGroup wave;
    for (int i = 0; i < count; ++i) {
      wave.go([&work, &work_ns, us = lengths.next_us()] {
        std::int64_t before = cpu_time_ns();
        work.compute_us(us);
        work_ns.fetch_add(cpu_time_ns() - before, std::memory_order_relaxed);
      });
    }
    wave.wait();
  }
  out.balance_seconds += Seconds(Clock::now() - start).count();
  out.balance_work_seconds += static_cast<double>(work_ns) / 1e9;
}

std::vector<double> busy_between(const magpie::Stats& before, const magpie::Stats& after) {
  std::vector<double> busy;
  for (std::size_t i = 0; i < std::min(before.procs.size(), after.procs.size()); ++i) {
    busy.push_back(static_cast<double>(after.procs[i].busy_ns - before.procs[i].busy_ns) / 1e9);
  }
  return busy;
}

// Goroutines that compute and yield for ever: they have stacks, and live through every change of
// procs.
void resize(const Work& work) {
  constexpr int kWorkers = 64;
  constexpr double kTurnUs = 300;
  int before = magpie::procs();
  int most = std::max(2, before);
  std::vector<int> steps = {1, most};
  if (most > 3) steps.insert(steps.begin() + 1, most / 2);

  std::atomic<bool> enough = false;
  magpie::WaitGroup workers;
  for (int i = 0; i < kWorkers; ++i) {
    workers.go([&] {
      while (!enough) {
        work.compute_us(kTurnUs);
        magpie::yield();
      }
    });
  }
  for (int procs : steps) {
    magpie::set_procs(procs);
    auto until = Clock::now() + kResizeFor / static_cast<int>(steps.size());
    while (Clock::now() < until && !work.must_hurry()) {
      work.compute_us(kTurnUs);
      magpie::yield();
    }
  }
  enough = true;
  workers.wait();
  magpie::set_procs(before);
}

std::int64_t resident_bytes() {
  long pages = 0;
  if (FILE* statm = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(statm, "%*d %ld", &pages) != 1) pages = 0;
    std::fclose(statm);
  }
  return pages * sysconf(_SC_PAGESIZE);
}

void start_a_million(const Work& work, Outcome& out) {
  constexpr std::uint64_t kMillion = 1'000'000;
  int procs = magpie::procs();
  double each_us = std::min(procs, 8);  // so that the end can be watched
  magpie::set_procs(1);                 // and we hold that P: none of them runs before we let go
  magpie::WaitGroup all;
  all.add(kMillion);
  std::int64_t memory = resident_bytes();
  auto start = Clock::now();
  while (out.million < kMillion && (out.million % 4096 != 0 || !work.must_hurry())) {
    ++out.million;
    magpie::go([&all, &work, each_us] {
      work.compute_us(each_us);
      all.done();
    });
  }
  out.spawn_seconds = Seconds(Clock::now() - start).count();
  out.bytes_each = static_cast<double>(resident_bytes() - memory) /
                   static_cast<double>(std::max<std::uint64_t>(1, out.million));
  all.add(static_cast<std::int64_t>(out.million) - static_cast<std::int64_t>(kMillion));
  if (!work.must_hurry()) {
    std::this_thread::sleep_for(kHoldFor);  // blocks the thread and its P, on purpose
  }
  magpie::set_procs(procs);
  all.wait();
}

void do_nothing() {
  magpie::WaitGroup rest;
  rest.add(1);
  std::thread alarm([&] {
    std::this_thread::sleep_for(kIdleFor);
    rest.done();
  });
  rest.wait();
  alarm.join();
}

}  // namespace

Outcome run_load(Progress& progress) {
  Work work(progress);
  Outcome out;
  // Longer goroutines on more Ps, so that waves take about as long everywhere.
  double scale = std::min(magpie::procs(), 8);
  magpie::Stats before = magpie::stats();
  progress.phase = 0;
  run_waves(work, kStealFor, 200, 2000 * scale, out);
  progress.phase = 1;
  run_waves(work, kSpillFor, 5000, 60 * scale, out);
  out.busy_seconds = busy_between(before, magpie::stats());
  progress.phase = 2;
  if (!work.must_hurry()) resize(work);
  progress.phase = 3;
  start_a_million(work, out);
  progress.phase = 4;
  out.most_threads = magpie::num_threads();
  if (!progress.cancel) do_nothing();
  out.stats = magpie::stats();
  return out;
}

}  // namespace demo
