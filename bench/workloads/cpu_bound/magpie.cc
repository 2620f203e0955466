// cpu_bound: 1,000 goroutines compute for 50 ms of CPU each, without any call. The time in all
// beside the ideal, how many threads it took, and how many of those wanted a CPU at the same time:
// as many as there are procs, and one more for a moment while one takes over from another.
#include <dirent.h>
#include <magpie/magpie.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "measure.h"

namespace {

// A fixed amount of work, measured first.
void compute(long rounds) {
  volatile double sum = 0;
  for (long i = 1; i <= rounds; ++i) sum = sum + 1.0 / static_cast<double>(i);
}

long rounds_of_ms(double ms) {
  long rounds = 1'000'000;
  for (;;) {
    auto begin = static_cast<double>(bench::now_ns());
    compute(rounds);
    double took = static_cast<double>(bench::now_ns()) - begin;
    if (took > 50e6) return static_cast<long>(static_cast<double>(rounds) * ms * 1e6 / took);
    rounds *= 2;
  }
}

// Looks, from outside the runtime, at the states of all threads, ten times a second: one look costs
// about a millisecond.
class Watcher {
 public:
  explicit Watcher(int limit) : limit_(limit) {}
  ~Watcher() { stop(); }
  void stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  // After stop().
  int most() const { return most_; }
  double percent_beyond_limit() const { return 100.0 * beyond_ / std::max(looks_, 1); }

 private:
  static bool is_runnable(const std::string& task) {
    std::ifstream file("/proc/self/task/" + task + "/stat");
    std::string line;
    std::getline(file, line);
    std::size_t name_end = line.rfind(')');
    return name_end != std::string::npos && line.compare(name_end, 3, ") R") == 0;
  }

  // Threads that run or wait for a CPU, without this one. Meanwhile one may have taken over from
  // another: those that seem to are looked at again, which takes microseconds.
  static int runnable() {
    std::vector<std::string> found;
    DIR* tasks = opendir("/proc/self/task");
    while (dirent* task = readdir(tasks)) {
      if (is_runnable(task->d_name)) found.emplace_back(task->d_name);
    }
    closedir(tasks);
    return static_cast<int>(std::count_if(found.begin(), found.end(), is_runnable)) - 1;
  }

  void look() {
    while (!stop_) {
      int now = runnable();
      most_ = std::max(most_, now);
      if (now > limit_) ++beyond_;
      ++looks_;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }

  int limit_;
  int most_ = 0, looks_ = 0, beyond_ = 0;  // the thread's until it is joined
  std::atomic<bool> stop_{false};
  std::thread thread_{[this] { look(); }};
};

}  // namespace

int main(int argc, char** argv) {
  bench::Args args(argc, argv);
  int procs = static_cast<int>(args.number("procs", 2));
  long goroutines = args.number("goroutines", 1000);
  long milliseconds = args.number("milliseconds", 50);
  long rounds = rounds_of_ms(static_cast<double>(milliseconds));
  magpie::run(magpie::Options{.procs = procs}, [&] {
    Watcher watcher(procs + 1);
    double cpu_before = bench::cpu_ns();
    auto begin = static_cast<double>(bench::now_ns());
    magpie::WaitGroup all;
    for (long i = 0; i < goroutines; ++i) all.go([rounds] { compute(rounds); });
    all.wait();
    double took = static_cast<double>(bench::now_ns()) - begin;
    double cpu = bench::cpu_ns() - cpu_before;
    magpie::Stats stats = magpie::stats();
    bench::report("percent_of_ideal", 100 * cpu / procs / took);
    bench::report("ms", took / 1e6);
    bench::report("threads", stats.threads);
    watcher.stop();
    bench::report("most_runnable", watcher.most());
    bench::report("percent_of_looks_beyond_procs_and_one", watcher.percent_beyond_limit());
    bench::report("preemptions", static_cast<double>(stats.total.preemptions));
  });
}
