// worker_pool.cc: many jobs, a few workers.
//
// Use a pool when the jobs need something that there is little of: a database, memory, a licence.
// Look at the last line: at most four at a time, and submit() waited when eight were queued.
#include <magpie/magpie.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>

int main() {
  constexpr int kWorkers = 4, kQueue = 8, kJobs = 200;
  return magpie::run([] {
    std::atomic<int> working = 0, most = 0, done = 0;
    std::size_t longest_queue = 0;
    magpie::WorkerPool pool(kWorkers, kQueue);
    for (int i = 0; i < kJobs; ++i) {
      pool.submit([&] {
        const int now = ++working;
        for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
        }
        magpie::sleep_for(std::chrono::milliseconds(1));
        --working;
        ++done;
      });
      longest_queue = std::max(longest_queue, pool.queued());
    }
    pool.wait();
    std::printf("%d jobs, at most %d at a time, at most %zu queued\n", done.load(), most.load(),
                longest_queue);
    return done == kJobs && most <= kWorkers && longest_queue <= kQueue ? 0 : 1;
  });
}
