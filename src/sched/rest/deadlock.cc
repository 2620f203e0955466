#include "sched/rest/deadlock.h"

#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "base/check.h"
#include "sched/dump/crash.h"
#include "sched/dump/snapshot.h"
#include "sched/rest/bystanders.h"
#include "sched/rest/fire.h"
#include "sched/rest/rest.h"
#include "sched/run/runtime.h"
#include "sched/visit.h"

namespace magpie::sched {
namespace {

constexpr int kMostCounts = 50;

// atomic, published: by the code that makes the library's thread; null: there is no such thread
std::atomic<bool (*)()> library_thread_is_awaited{nullptr};

// Threads of this process; 0 when /proc does not tell. It does not list /proc/self/task: a thread
// that ends during the listing cuts it short.
int count_process_threads() {
  std::FILE* status = std::fopen("/proc/self/status", "re");
  if (status == nullptr) return 0;
  char line[256];
  int count = 0;
  while (std::fgets(line, sizeof line, status) != nullptr) {
    if (std::sscanf(line, "Threads: %d", &count) == 1) break;
  }
  std::fclose(status);
  return count;
}

void print_all(Text& out, Naming naming, const void* snapshot) {
  print(out, *static_cast<const Snapshot*>(snapshot), naming);
}

// Nothing runs, so nothing changes meanwhile.
void print_goroutines() {
  Snapshot all;
  all.take(Snapshot::Folding::yes, Snapshot::Asks::nobody);
  print_with_symbols(print_all, &all);
}

}  // namespace

bool may_be_deadlock() {
  Search::View view = runtime->search.view();
  return runtime->options.on_deadlock != DeadlockPolicy::ignore && view.searching == 0 &&
         view.idle == runtime->ps.count() && runtime->without_p.count() == 0 &&
         runtime->global.empty() && earliest_timer_ns() == kNever;
}

void set_library_thread(bool (*is_awaited)()) {
  library_thread_is_awaited.store(is_awaited, std::memory_order_release);
}

void note_library_thread_has_acted() {
  if (Visit visit; visit) let_another_look_for_deadlock();
}

OtherThreads look_for_other_threads() {
  auto is_awaited = library_thread_is_awaited.load(std::memory_order_acquire);
  if (is_awaited != nullptr && is_awaited()) return OtherThreads::awaited;
  int of_the_library = is_awaited != nullptr ? 1 : 0;
  // A thread that is being made, or leaves, while the process's threads are counted would stand for
  // a thread that is not ours: count again then. That takes some microseconds each time. A thread
  // that leaves may use the runtime as a plain thread: the destructors of its thread_locals may.
  for (int tries = 0; tries < kMostCounts; ++tries) {
    std::optional<std::uint64_t> made = runtime->threads.maker.made_unless_making();
    int ours = runtime->threads.count();
    bool some_leave = runtime->threads.some_are_leaving();  // after `ours`, which omits them
    int promised = count_bystanders();
    int all = count_process_threads();
    bool is_certain = made && !some_leave && runtime->threads.count() == ours &&
                      runtime->threads.maker.made_unless_making() == made &&
                      count_bystanders() == promised;
    if (is_certain) {
      int expected = ours + runtime->threads.helpers() + runtime->sysmon.helpers() +
                     runtime->watcher.helpers() + of_the_library + promised;
      return all == expected ? OtherThreads::none : OtherThreads::some;
    }
    sched_yield();
  }
  return OtherThreads::unknown;
}

void report_deadlock() {
  if (runtime->deadlock_reported.exchange(true, base::relaxed)) return;
  base::warn("all goroutines are asleep - deadlock! Nothing is left that could wake these:");
  print_goroutines();
  if (runtime->options.on_deadlock == DeadlockPolicy::report) return;
  std::fflush(nullptr);
  _exit(2);
}

}  // namespace magpie::sched
