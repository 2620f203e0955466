// trace_control.cc: traces begin and end, with the world stopped; and what programs add to them.
#include <magpie/trace.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <stdexcept>
#include <string>

#include "base/check.h"
#include "sched/current.h"
#include "sched/entry.h"
#include "sched/run/runtime.h"
#include "sched/run/tracing.h"
#include "sched/visit.h"
#include "trace/recorder.h"

namespace magpie::sched {
namespace {

using trace::Recorder;

// ---- what the recorder asks

std::uint32_t count_procs() { return static_cast<std::uint32_t>(procs()); }

// The words of stats().
struct Sum {
  const char* name;
  base::Counter PCounters::*counter;
};
constexpr Sum kSums[] = {
    {"goroutines_started", &PCounters::goroutines_started},
    {"goroutines_ended", &PCounters::goroutines_ended},
    {"steals_tried", &PCounters::steals_tried},
    {"steals_succeeded", &PCounters::steals_succeeded},
    {"goroutines_stolen", &PCounters::goroutines_stolen},
    {"runnext_stolen", &PCounters::runnext_stolen},
    {"overflows", &PCounters::overflows},
    {"goroutines_spilled", &PCounters::goroutines_spilled},
    {"global_batches", &PCounters::global_batches},
    {"parks", &PCounters::parks},
    {"wakes", &PCounters::wakes},
    {"searches", &PCounters::searches},
    {"joined_in_place", &PCounters::joined_in_place},
    {"timers_fired", &PCounters::timers_fired},
    {"polls", &PCounters::polls},
    {"polled", &PCounters::polled},
    {"handoffs", &PCounters::handoffs},
    {"preemptions", &PCounters::preemptions},
};
constexpr auto kNames = [] {
  std::array<const char*, std::size(kSums)> names{};
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kSums[i].name;
  return names;
}();
static_assert(kNames.size() <= trace::kMostTotals);

// The sums over all Ps. The runtime runs.
trace::Sums read_totals() {
  trace::Sums sums{};
  for (std::size_t i = 0; i < std::size(kSums); ++i) {
    for (P* p : runtime->ps.all()) sums[i] += (p->counters.*kSums[i].counter).read();
  }
  return sums;
}

void visit_totals(trace::Sums& out) {
  std::optional<Visit> visit;
  if (current_m() == nullptr) visit.emplace();
  if (!visit || *visit) out = read_totals();
}

// A record may be given to another goroutine while it is read. The events of that goroutine tell
// better.
struct Glance {
  std::uint64_t id, body;
  GState state;
  WaitReason reason;
};
[[gnu::noinline, gnu::no_sanitize_thread]] std::optional<Glance> glance_at(const G* g) {
  Glance seen{g->id, reinterpret_cast<std::uint64_t>(g->body), g->state.load(base::relaxed),
              g->wait_reason.load(base::relaxed)};
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (g->id != seen.id || seen.state == GState::free || seen.state == GState::ended)
    return std::nullopt;
  return seen;
}

// The number of the P that g runs on, from 1. 0: it has none.
std::uint64_t proc_of(const G* g) {
  for (P* p : runtime->ps.in_use()) {
    M* m = p->holder.load(base::acquire);
    if (m != nullptr && m->current == g) return static_cast<std::uint64_t>(p->index) + 1;
  }
  return 0;
}

// Every P that is held, and every goroutine.
void list_states(trace::StateList& out) {
  std::optional<Visit> visit;
  if (current_m() == nullptr) visit.emplace();
  if (visit && !*visit) return;
  Entry entry;
  for (P* p : runtime->ps.in_use()) {
    if (M* m = p->holder.load(base::acquire))
      out.add_proc(static_cast<std::uint64_t>(m->os.tid.load(base::relaxed)),
                   static_cast<std::uint64_t>(p->index));
  }
  runtime->records.for_each([&](G* g) {
    std::optional<Glance> seen = glance_at(g);
    if (!seen) return;
    std::uint64_t where = seen->state == GState::running ? proc_of(g) : 0;
    out.add_goroutine(seen->id, static_cast<std::uint8_t>(seen->state),
                      static_cast<std::uint8_t>(seen->reason), where, seen->body);
  });
}

constexpr trace::Host kHost{kNames, count_procs, visit_totals, list_states};

// ---- stopping the world

// Calls change(m) inside, while no other M holds a P; m is the caller's M, or null. False: no
// runtime runs.
template <class F>
bool while_stopped(F change) {
  std::optional<Visit> visit;
  if (current_m() == nullptr) {
    visit.emplace();
    if (!*visit) return false;
  }
  while (!runtime->world.try_lock()) {
    if (runtime->world.ending() && visit) return false;
    yield();
  }
  Entry entry;
  M* m = entry.m();
  runtime->world.stop(m);
  change(m);
  runtime->world.start(m);
  runtime->world.unlock();
  return true;
}

void pause_briefly() {
  constexpr timespec kNap{.tv_sec = 0, .tv_nsec = 50'000};
  if (current_m() != nullptr) {
    yield();
  } else {
    nanosleep(&kNap, nullptr);
  }
}

}  // namespace

namespace {

// exit() in a goroutine or thread ends the process in the middle of a run(). What the Ps have not
// handed on yet would be missing.
void end_trace_at_exit() {
  std::optional<Visit> visit;
  if (current_m() == nullptr) visit.emplace();
  // A loop that cannot be preempted keeps the world from stopping.
  bool can_stop = (visit && !*visit) || runtime->options.preempt;
  visit.reset();
  if (!can_stop) return;
  try {
    trace::stop();
  } catch (const std::exception& error) {
    base::warn("%s", error.what());
  }
}

void end_trace_with_process() {
  static const bool is_registered = std::atexit(end_trace_at_exit) == 0;
  (void)is_registered;
}

}  // namespace

void trace_begin_run() {
  const char* wanted = std::getenv("MAGPIE_TRACE");
  if (wanted != nullptr && *wanted != '\0' && !Recorder::is_of_parent() &&
      !Recorder::is_prepared()) {
    constexpr std::string_view kFlight = "flight:";
    trace::Plan plan{.path = wanted, .bytes = trace::Options{}.bytes};
    if (plan.path.starts_with(kFlight)) {
      plan.flight = plan.on_crash = true;
      plan.path.erase(0, kFlight.size());
      struct sigaction now;
      bool is_free = sigaction(SIGUSR2, nullptr, &now) == 0 && now.sa_handler == SIG_DFL;
      if (is_free) plan.signal = SIGUSR2;
    }
    std::string error = Recorder::prepare(plan, kHost);
    if (!error.empty()) base::warn("MAGPIE_TRACE: %s; nothing is recorded", error.c_str());
    end_trace_with_process();
  }
  trace::Start start;
  start.is_new_run = true;
  start.procs = runtime->ps.count();
  if (Recorder::switch_on(start)) Recorder::write_beginning(start);
}

void trace_end_run() {
  if (Recorder::switch_off(read_totals())) Recorder::write_end();
}

}  // namespace magpie::sched

namespace magpie::trace {

using namespace sched;

void start(const std::string& path, const Options& options) {
  if (Recorder::is_prepared()) throw std::logic_error("magpie: trace: a trace is recorded already");
  std::string error = Recorder::prepare({.flight = options.flight,
                                         .path = path,
                                         .bytes = options.bytes,
                                         .signal = options.signal,
                                         .on_crash = options.on_crash},
                                        kHost);
  if (error.starts_with("a trace")) throw std::logic_error("magpie: trace: " + error);
  if (!error.empty()) throw std::runtime_error("magpie: trace: " + error);
  end_trace_with_process();
  Start beginning;
  bool is_on = false;
  while_stopped([&](M* m) {
    if (m != nullptr) {
      beginning.proc = m->p->index;
      beginning.goroutine = m->current->id;
    }
    beginning.procs = runtime->ps.count();
    beginning.totals = read_totals();
    list_states(beginning.states);
    is_on = Recorder::switch_on(beginning);
  });
  if (is_on) Recorder::write_beginning(beginning);
}

bool stop() {
  if (!Recorder::is_prepared()) return false;
  // While a run() begins or ends, its world is not to be stopped: it is asked again, or switches
  // off itself.
  for (;; pause_briefly()) {
    while_stopped([](M*) { Recorder::switch_off(read_totals()); });
    Recorder::Finishing now = Recorder::begin_to_finish();
    if (now == Recorder::Finishing::by_others) return false;
    if (now == Recorder::Finishing::by_caller) break;
  }
  std::string error = Recorder::finish();
  if (!error.empty()) throw std::runtime_error("magpie: trace: " + error);
  return true;
}

void snapshot(const std::string& path) {
  std::string error = Recorder::snapshot(path);
  if (error.starts_with("no flight")) throw std::logic_error("magpie: trace: " + error);
  if (!error.empty()) throw std::runtime_error("magpie: trace: " + error);
}

namespace {

// Calls put(buffer) with the stream that the caller may write to.
template <class F>
void put_here(F put) {
  Entry entry;
  if (M* m = entry.m()) {
    if (traced()) put(buffer_of(m->p->index));  // entering may have waited for the end of a trace
  } else {
    Outside::with(put);
  }
}

base::Atomic<std::uint64_t> next_task{1};  // atomic, a count: numbers only have to be unique

}  // namespace

Region::Region(std::string_view name) : name_(name) {
  if (traced())
    put_here([&](Buffer& to) { to.put_text(ticks_now(), Kind::region_begin, name_, {}); });
}

Region::~Region() {
  if (traced())
    put_here([&](Buffer& to) { to.put_text(ticks_now(), Kind::region_end, name_, {}); });
}

Task::Task(std::string_view name, std::uint64_t parent)
    : id_(next_task.fetch_add(1, base::relaxed)) {
  if (traced())
    put_here(
        [&](Buffer& to) { to.put_text(ticks_now(), Kind::task_begin, name, {}, id_, parent); });
}

Task::~Task() {
  if (traced()) put_here([&](Buffer& to) { to.put(ticks_now(), Kind::task_end, id_); });
}

void log(std::string_view category, std::string_view text) {
  if (traced()) put_here([&](Buffer& to) { to.put_text(ticks_now(), Kind::log, category, text); });
}

}  // namespace magpie::trace
