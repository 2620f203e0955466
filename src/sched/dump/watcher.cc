#include "sched/dump/watcher.h"

#include <magpie/dump.h>
#include <magpie/runtime.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/guard.h"
#include "base/immortal.h"
#include "base/os.h"
#include "base/sanitizer.h"
#include "sched/dump/fault_guard.h"
#include "sched/dump/snapshot.h"
#include "sched/dump/text.h"
#include "sched/run/runtime.h"
#include "symbol/symbols.h"

namespace magpie::sched {
namespace {

using SlowHandler = std::function<void(const SlowGoroutine&)>;

constexpr int kMostSlowReports = 5;
constexpr std::int64_t kReportWindowNs = 1'000'000'000;
constexpr std::int64_t kBlockedWindowNs = 60'000'000'000;
constexpr std::int64_t kSlowAnswerNs = 100'000'000;
constexpr std::int64_t kShortestLookNs = 10'000'000;

base::Lock slow_handler_lock;
constinit base::Immortal<std::shared_ptr<SlowHandler>> slow_handler
    MAGPIE_GUARDED_BY(slow_handler_lock);

std::shared_ptr<SlowHandler> current_slow_handler() {
  base::Guard hold(slow_handler_lock);
  return slow_handler.value;
}

// Waits that are to be short. Workers wait at channels and descriptors for as long as there is
// nothing to do.
bool is_for_lock(WaitReason reason) {
  return reason == WaitReason::mutex || reason == WaitReason::once ||
         reason == WaitReason::rw_mutex_read || reason == WaitReason::rw_mutex_write ||
         reason == WaitReason::semaphore;
}

void on_quit(int, siginfo_t*, void*) {
  if (runtime != nullptr) runtime->threads.maker.ask_for_dump();
}

}  // namespace

void Watcher::start_if_needed() {
  if (report_blocked_ns_ != 0 || slow_ns_ != 0) make();
}

void Watcher::make() {
  is_there_.store(true, base::relaxed);
  bool made = base::os().create_thread(
                  &thread_, nullptr,
                  [](void* self) -> void* {
                    static_cast<Watcher*>(self)->run();
                    return nullptr;
                  },
                  this) == 0;
  if (!made) is_there_.store(false, base::relaxed);
}

void Watcher::dump_soon() {
  if (!is_there_.load(base::relaxed)) make();
  dump_wanted_.store(true, base::relaxed);
  event_.set();
}

void Watcher::stop() {
  if (!is_there_.load(base::relaxed)) return;
  stop_.store(true, base::relaxed);
  event_.set();
  pthread_join(thread_, nullptr);
  is_there_.store(false, base::relaxed);
}

void Watcher::run() {
  pthread_setname_np(pthread_self(), "magpie-watcher");
  std::int64_t gap_ns = std::max(report_blocked_ns_ / 4, kShortestLookNs);
  std::int64_t next_look_ns = base::now_ns() + gap_ns;
  while (!stop_.load(base::relaxed)) {
    if (report_blocked_ns_ == 0) {
      event_.wait();
    } else {
      (void)event_.wait_until(next_look_ns);
    }
    if (stop_.load(base::relaxed)) return;
    Slow slow;
    while (take_slow(slow)) report(slow);
    if (dump_wanted_.exchange(false, base::relaxed)) dump();
    if (report_blocked_ns_ != 0 && base::now_ns() >= next_look_ns) {
      look_for_blocked();
      next_look_ns = base::now_ns() + gap_ns;
    }
  }
}

void Watcher::dump() {
  {
    Snapshot all;
    all.take(Snapshot::Folding::yes);
    int descriptor = STDERR_FILENO;
    Text out(write_to_descriptor, &descriptor);
    print(out, all, Naming::by_symbols);
  }
  if (runtime->options.on_quit == QuitPolicy::exit) _exit(2);
}

// As many as are remembered, and then no more for a while: otherwise the same would be reported
// again and again.
bool Watcher::may_report_blocked() {
  std::int64_t now_ns = base::now_ns();
  if (now_ns - minute_ns_ >= kBlockedWindowNs) {
    minute_ns_ = now_ns;
    blocked_reports_ = 0;
  }
  if (++blocked_reports_ == std::size(reported_) + 1)
    base::warn("more goroutines wait for locks for as long; magpie::dump() shows all");
  return blocked_reports_ <= std::size(reported_);
}

void Watcher::look_for_blocked() {
  Snapshot all;
  all.take(Snapshot::Folding::yes, Snapshot::Asks::nobody);
  int descriptor = STDERR_FILENO;
  Text out(write_to_descriptor, &descriptor);
  for (const Group* group : all) {
    if (group->state != GState::waiting || group->waited_ns < report_blocked_ns_) continue;
    const WaitGraph::Wait* wait = all.waits().find(group->longest);
    if (!is_for_lock(group->reason) && (wait == nullptr || !wait->stuck)) continue;
    auto id = static_cast<std::int64_t>(group->longest);
    if (std::find(std::begin(reported_), std::end(reported_), id) != std::end(reported_)) continue;
    if (!may_report_blocked()) return;
    reported_[next_reported_++ % std::size(reported_)] = id;
    if (wait != nullptr && wait->in_cycle) print_cycles(out, all.waits());
    base::warn("goroutine %lu%s%s%s waits for a lock for more than %.3f s",
               static_cast<unsigned long>(id), *group->name != '\0' ? " (" : "", group->name,
               *group->name != '\0' ? ")" : "", static_cast<double>(group->waited_ns) / 1e9);
    print_group(out, *group, all.waits(), Naming::by_symbols);
    out.flush();
  }
}

void Watcher::note_slow(M* m, std::int64_t for_ns, bool blocks) {
  G* g = m->current;
  if (g == nullptr) return;
  {
    base::Guard hold(slow_lock_);
    if (slow_count_ == kMostSlow) return;
    slow_[slow_count_++] = {m, g, g->id, for_ns, blocks};
  }
  event_.set();
}

bool Watcher::take_slow(Slow& slow) {
  base::Guard hold(slow_lock_);
  if (slow_count_ == 0) return false;
  slow = slow_[--slow_count_];
  return true;
}

struct Watcher::Named {
  const Slow& slow;
  char name[Group::kMostName] = "";
};

[[MAGPIE_READS_RACILY]] void Watcher::look_at_name(void* looking) {
  auto& named = *static_cast<Named*>(looking);
  read_name(*named.slow.g, named.name);
  if (named.slow.g->id != named.slow.id) named.name[0] = '\0';
}

void Watcher::report(const Slow& slow) {
  std::int64_t now_ns = base::now_ns();
  if (now_ns - second_ns_ >= kReportWindowNs) {
    second_ns_ = now_ns;
    reports_ = 0;
  }
  if (++reports_ > kMostSlowReports) return;
  Frames frames;
  if (!take_sample(frames, slow.m, slow.id, now_ns + kSlowAnswerNs)) return;
  Named named{slow};
  if (!survives(look_at_name, &named)) named.name[0] = '\0';
  if (std::shared_ptr<SlowHandler> mine = current_slow_handler()) {
    SlowGoroutine report{
        slow.id, named.name, slow.blocks, std::chrono::nanoseconds(slow.for_ns), {}};
    for (std::size_t i = 0; i < frames.count; ++i) {
      const symbol::Place& place = symbol::place_of(frames.pcs[i]);
      report.frames.push_back(
          {frames.pcs[i], place.function, place.file, place.line, place.module, place.offset});
    }
    return (*mine)(report);
  }
  base::warn("goroutine %lu%s%s%s %s for %.3f ms without giving way",
             static_cast<unsigned long>(slow.id), *named.name != '\0' ? " (" : "", named.name,
             *named.name != '\0' ? ")" : "",
             slow.blocks ? "blocks in a call that blocking() does not declare" : "computes",
             static_cast<double>(slow.for_ns) / 1e6);
  int descriptor = STDERR_FILENO;
  Text out(write_to_descriptor, &descriptor);
  print_frames(out, frames, Naming::by_symbols);
}

void install_quit_handler() {
  if (runtime->options.on_quit == QuitPolicy::off) return;
  struct sigaction now;
  sigaction(SIGQUIT, nullptr, &now);
  if ((now.sa_flags & SA_SIGINFO) != 0 || now.sa_handler != SIG_DFL) return;
  struct sigaction action = {};
  action.sa_sigaction = on_quit;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigaction(SIGQUIT, &action, nullptr);
}

void remove_quit_handler() {
  struct sigaction now;
  sigaction(SIGQUIT, nullptr, &now);
  if ((now.sa_flags & SA_SIGINFO) == 0 || now.sa_sigaction != on_quit) return;
  signal(SIGQUIT, SIG_DFL);
}

}  // namespace magpie::sched

namespace magpie {

void on_slow(std::function<void(const SlowGoroutine&)> handler) {
  std::shared_ptr<sched::SlowHandler> next;
  if (handler) next = std::make_shared<sched::SlowHandler>(std::move(handler));
  base::Guard hold(sched::slow_handler_lock);
  sched::slow_handler.value.swap(next);
}

LogHook set_log_hook(LogHook hook) { return base::set_log_hook(hook); }

}  // namespace magpie
