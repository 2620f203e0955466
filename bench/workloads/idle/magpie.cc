// idle: a runtime with nothing to do must not wake up. A thousand goroutines wait at a gate; main
//   main=parked    waits there as well, or
//   main=blocked   sits in a plain read() that the runtime knows nothing about.
// A plain thread lets everything settle, then counts the context switches of all other threads for
// some seconds. A thread that sleeps all the time has none; each wake-up is at least one.
#include <magpie/magpie.h>

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <map>
#include <thread>

#include "measure.h"

namespace {

std::map<long, long> switches_by_thread(long except_thread) {
  std::map<long, long> result;
  DIR* tasks = opendir("/proc/self/task");
  while (dirent* entry = readdir(tasks)) {
    long thread = std::atol(entry->d_name);
    if (thread == 0 || thread == except_thread) continue;
    std::ifstream status("/proc/self/task/" + std::to_string(thread) + "/status");
    for (std::string line; std::getline(status, line);) {
      std::size_t at = line.find("voluntary_ctxt_switches:");  // also in "nonvoluntary_..."
      if (at != std::string::npos) result[thread] += std::atol(line.c_str() + line.find(':') + 1);
    }
  }
  closedir(tasks);
  return result;
}

void observe(long seconds) {
  long self = gettid();
  std::this_thread::sleep_for(std::chrono::seconds(2));
  std::map<long, long> before = switches_by_thread(self);
  std::this_thread::sleep_for(std::chrono::seconds(seconds));
  std::map<long, long> after = switches_by_thread(self);

  long switches = 0;
  for (auto [thread, count] : after) {
    long grown = count - (before.contains(thread) ? before[thread] : 0);
    if (grown != 0) std::fprintf(stderr, "idle: thread %ld switched %ld times\n", thread, grown);
    switches += grown;
  }
  bench::report("threads", static_cast<double>(after.size()));
  bench::report("switches", static_cast<double>(switches));
}

}  // namespace

int main(int argc, char** argv) {
  bench::Args args(argc, argv);
  int procs = static_cast<int>(args.number("procs", 2));
  long goroutines = args.number("goroutines", 1'000);
  long seconds = args.number("seconds", 10);
  bool main_parks = args.text("main", "parked") == "parked";

  int wake_main[2];
  if (pipe(wake_main) != 0) return 1;

  // Everything waits on purpose, for a thread that the runtime does not know.
  magpie::Options options{.procs = procs, .on_deadlock = magpie::DeadlockPolicy::ignore};
  magpie::run(options, [&] {
    magpie::WaitGroup arrived, gate, all;
    gate.add(1);
    arrived.add(static_cast<int>(goroutines));
    all.add(static_cast<int>(goroutines));
    for (long i = 0; i < goroutines; ++i) {
      magpie::go([&] {
        arrived.done();
        gate.wait();
        all.done();
      });
    }
    arrived.wait();

    std::jthread observer([&] {
      observe(seconds);
      gate.done();
      if (write(wake_main[1], "x", 1) != 1) std::abort();
    });
    char byte;
    if (!main_parks && read(wake_main[0], &byte, 1) != 1) std::abort();
    all.wait();
  });
}
