#include "sched/run/schedtrace.h"

#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "base/atomic.h"
#include "base/guard.h"
#include "sched/run/runtime.h"

namespace magpie::sched {
namespace {

// Collects text and writes it when there is much of it. The lines of a short dump stay together.
class Writer {
 public:
  ~Writer() { flush(); }
  Writer() = default;
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  void flush() {
    for (std::size_t done = 0; done < length_;) {
      ssize_t written = write(STDERR_FILENO, text_ + done, length_ - done);
      if (written <= 0) break;  // nobody reads
      done += static_cast<std::size_t>(written);
    }
    length_ = 0;
  }

  [[gnu::format(printf, 2, 3)]] void add(const char* format, ...) {
    if (length_ > sizeof text_ - kLongest) flush();
    va_list arguments;
    va_start(arguments, format);
    int added = std::vsnprintf(text_ + length_, kLongest, format, arguments);
    va_end(arguments);
    if (added > 0) length_ += std::min(static_cast<std::size_t>(added), kLongest - 1);
  }

 private:
  static constexpr std::size_t kLongest = 256;  // of one add()

  char text_[8192];
  std::size_t length_ = 0;
};

// A number, or nil as Go prints it. Each use has a buffer of its own.
struct OrNil {
  char text[24];
  explicit OrNil(bool there, std::uint64_t number) {
    if (there) {
      std::snprintf(text, sizeof text, "%llu", static_cast<unsigned long long>(number));
    } else {
      std::snprintf(text, sizeof text, "nil");
    }
  }
};

const char* yes_no(bool value) { return value ? "true" : "false"; }

using Number = unsigned long long;

int status_of(PState state) {
  switch (state) {
    case PState::idle:
      return 0;
    case PState::running:
      return 1;
    case PState::stopped:
      return 3;
    case PState::unused:
      return 4;
  }
  return 4;
}

// As Go numbers them.
int status_of(GState state) {
  switch (state) {
    case GState::free:
    case GState::ended:
      return 6;
    case GState::fresh:
    case GState::runnable:
      return 1;
    case GState::running:
      return 2;
    case GState::waiting:
      return 4;
  }
  return 6;
}

std::uint64_t number_of(const M* m) { return static_cast<std::uint64_t>(m->number); }

// Threads that wait for a P with their goroutine.
int locked_and_idle() {
  int count = 0;
  base::Guard hold(runtime->idle.lock());
  runtime->threads.for_each([&](M* m) {
    runtime->idle.lock().assume_held();
    count += m->rest.in_place.waits_locked() ? 1 : 0;
  });
  return count;
}

void print_counters(Writer& out) {
  PCounters sums;
  auto add = [](base::Counter& sum, const base::Counter& one) { sum.add(one.read()); };
  for (P* p : runtime->ps.all()) {
    add(sums.steals_succeeded, p->counters.steals_succeeded);
    add(sums.steals_tried, p->counters.steals_tried);
    add(sums.steals_far, p->counters.steals_far);
    add(sums.goroutines_stolen, p->counters.goroutines_stolen);
    add(sums.runnext_stolen, p->counters.runnext_stolen);
    add(sums.overflows, p->counters.overflows);
    add(sums.global_batches, p->counters.global_batches);
    add(sums.parks, p->counters.parks);
    add(sums.wakes, p->counters.wakes);
    add(sums.searches, p->counters.searches);
    add(sums.timers_fired, p->counters.timers_fired);
    add(sums.polls, p->counters.polls);
    add(sums.polled, p->counters.polled);
    add(sums.handoffs, p->counters.handoffs);
    add(sums.preemptions, p->counters.preemptions);
  }
  out.add(" steal=%llu/%llu/%llu runnextsteal=%llu overflow=%llu globalbatch=%llu",
          Number{sums.steals_succeeded.read()}, Number{sums.steals_tried.read()},
          Number{sums.goroutines_stolen.read()}, Number{sums.runnext_stolen.read()},
          Number{sums.overflows.read()}, Number{sums.global_batches.read()});
  out.add(
      " park=%llu wake=%llu search=%llu timer=%llu poll=%llu/%llu handoff=%llu preempt=%llu "
      "without_p=%d "
      "valve=%llu",
      Number{sums.parks.read()}, Number{sums.wakes.read()}, Number{sums.searches.read()},
      Number{sums.timers_fired.read()}, Number{sums.polled.read()}, Number{sums.polls.read()},
      Number{sums.handoffs.read()}, Number{sums.preemptions.read()}, runtime->without_p.count(),
      Number{runtime->sysmon.valve().openings()});
  // Both only where they say something: most lines stay as short as they were.
  if (sums.steals_far.read() != 0) out.add(" farsteal=%llu", Number{sums.steals_far.read()});
  const ProcsSource& limits = runtime->procs_source;
  const cpus::Throttling throttling = limits.throttling();
  if (limits.quota() == 0 && throttling.periods == 0) return;
  out.add(" quota=%.2f throttled=%llu/%llu/%llums", limits.quota(),
          Number{throttling.throttled_periods}, Number{throttling.periods},
          Number{throttling.throttled_ns / 1'000'000});
}

void print_p(const P& p, Writer& out) {
  M* holder = p.holder.load(base::acquire);
  out.add(
      "  P%d: status=%d schedtick=%llu syscalltick=%llu m=%s runqsize=%zu gfreecnt=%zu "
      "timerslen=%zu",
      p.index, status_of(p.state.load(base::relaxed)), Number{p.counters.ticks.read()},
      Number{p.counters.handoffs.read()},
      OrNil(holder != nullptr, holder != nullptr ? number_of(holder) : 0).text, p.queue.size(),
      p.records.count(), p.timers.size());
  out.add(" runnext=%s steal=%llu preempt=%llu\n", yes_no(p.queue.next.peek() != nullptr),
          Number{p.counters.steals_succeeded.read()}, Number{p.counters.preemptions.read()});
}

void print_m(M* m, Writer& out) {
  const P* held = nullptr;
  for (P* p : runtime->ps.in_use()) {
    if (p->holder.load(base::relaxed) == m) held = p;
  }
  bool in_call = m->is_in_blocking_call();
  G* running = m->current;
  out.add(
      "  M%llu: p=%s curg=%s mallocing=0 throwing=0 preemptoff= locks=0 dying=0 spinning=%s "
      "blocked=%s",
      Number{number_of(m)},
      OrNil(held != nullptr, held != nullptr ? static_cast<std::uint64_t>(held->index) : 0).text,
      OrNil(running != nullptr, running != nullptr ? running->id : 0).text, yes_no(m->searching),
      yes_no(held == nullptr && !m->grip.is_taken()));
  bool locked = running != nullptr && running->bound;
  out.add(" lockedg=%s without_p=%s blocking=%s tid=%d\n",
          OrNil(locked, locked ? running->id : 0).text, yes_no(m->grip.is_taken()), yes_no(in_call),
          static_cast<int>(m->os.tid.load(base::relaxed)));
}

void print_g(const G& g, Writer& out) {
  GState state = g.state.load(base::relaxed);
  if (state == GState::free) return;
  const char* reason = state == GState::waiting ? text(g.reason()) : "";
  M* its = nullptr;
  if (state == GState::running) {
    runtime->threads.for_each([&](M* m) {
      if (m->current == &g) its = m;
    });
  }
  OrNil m(its != nullptr, its != nullptr ? number_of(its) : 0);
  out.add("  G%llu: status=%d(%s) m=%s lockedm=%s\n", Number{g.id}, status_of(state), reason,
          m.text, g.bound ? m.text : "nil");
}

// Facts that only matter when something is stuck. Unchecked: a debugger calls this, and Idle's lock
// may be held for ever.
MAGPIE_UNCHECKED void print_where_m_waits(const M* m, Writer& out) {
  M* successor = m->successor.glance();
  out.add("      inside=%s asleep=%s in_poller=%s in_place=%s handed=%s successor=%s over=%s\n",
          yes_no(m->grip.is_inside()), yes_no(m->rest.listed), yes_no(m->rest.in_poller),
          yes_no(m->rest.in_place.waits_locked()),
          OrNil(m->rest.handed != nullptr,
                m->rest.handed != nullptr ? Number(m->rest.handed->index) : 0)
              .text,
          OrNil(successor != nullptr,
                successor != nullptr ? Number(successor->os.tid.load(base::relaxed)) : 0)
              .text,
          yes_no(m->is_over || m->has_ended));
}

}  // namespace

extern "C" void magpie_print_state() {
  Writer out;
  if (runtime == nullptr) return out.add("magpie: no runtime runs\n");
  Search::View view = runtime->search.view();
  out.add(
      "magpie: procs=%u idle=%u searching=%u world=%s waits_for=%u threads=%d asleep=%d "
      "wanted=%s preempted=%d runqueue=%zu urgent=%zu stopped=%zu",
      runtime->ps.count(), view.idle, view.searching,
      runtime->world.ending()     ? "ends"
      : runtime->world.stopping() ? "stops"
                                  : "goes on",
      runtime->world.still_held(), runtime->threads.count(), runtime->idle.idle_threads(),
      yes_no(runtime->threads.maker.has_wanted()), runtime->preempted.load(base::relaxed),
      runtime->global.size(), runtime->global.urgent(), runtime->global.stopped());
  print_counters(out);
  out.add("\n");
  for (P* p : runtime->ps.in_use()) print_p(*p, out);
  runtime->threads.for_each([&](M* m) {
    print_m(m, out);
    print_where_m_waits(m, out);
  });
  out.flush();  // the goroutines need a lock that may be held
  constexpr int kMost = 1'000;
  int printed = 0;
  runtime->records.for_each([&](G* g) {
    if (g->state.load(base::relaxed) != GState::free && ++printed <= kMost) print_g(*g, out);
  });
  if (printed > kMost) out.add("  and %d more\n", printed - kMost);
}

void Schedtrace::print_if_due(std::int64_t now_ns) {
  if (every_ns_ == 0 || now_ns < next_ns_) return;
  if (started_ns_ == 0) started_ns_ = now_ns;
  next_ns_ = now_ns + every_ns_;
  print(now_ns - started_ns_);
}

void Schedtrace::print(std::int64_t since_start_ns) const {
  Writer out;
  Search::View view = runtime->search.view();
  out.add(
      "SCHED %lldms: gomaxprocs=%u idleprocs=%u threads=%d spinningthreads=%u needspinning=0 "
      "idlethreads=%d runqueue=%zu",
      static_cast<long long>(since_start_ns / 1'000'000), runtime->ps.count(), view.idle,
      runtime->threads.count() + runtime->threads.helpers() + runtime->sysmon.helpers(),
      view.searching, runtime->idle.idle_threads(), runtime->global.size());
  if (detail_) {
    out.add(" gcwaiting=%s nmidlelocked=%d stopwait=%u sysmonwait=false",
            yes_no(runtime->world.stopping()), locked_and_idle(), runtime->world.still_held());
    print_counters(out);
    out.add("\n");
    for (P* p : runtime->ps.in_use()) print_p(*p, out);
    runtime->threads.for_each([&](M* m) { print_m(m, out); });
    runtime->records.for_each([&](G* g) { print_g(*g, out); });
    return;
  }
  out.add(" [");
  for (P* p : runtime->ps.in_use()) out.add(" %zu", p->queue.size());
  out.add(" ] schedticks=[");
  for (P* p : runtime->ps.in_use()) out.add(" %llu", Number{p->counters.ticks.read()});
  out.add(" ]");
  print_counters(out);
  out.add("\n");
}

}  // namespace magpie::sched
