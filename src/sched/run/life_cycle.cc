// life_cycle.cc: run() begins and ends.
//
// The calling thread becomes the first M. Main is an ordinary goroutine whose body ends the world
// when it returns. Then every M leaves its loop at its next look, and its thread ends. The first
// M's thread returns from here. Two kinds of goroutines are left. Goroutines that never ran: their
// closures are destroyed. Goroutines that are parked: their stacks are unmapped as they are. exit()
// in a goroutine is an ordinary call. Its handlers run on the goroutine's stack while the other
// threads run on until the process ends. The runtime has no static destructors.
#include <csignal>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>

#include <magpie/runtime.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/fence.h"
#include "base/guard.h"
#include "sched/core/ending.h"
#include "sched/core/loop.h"
#include "sched/core/queues.h"
#include "sched/core/switching.h"
#include "sched/current.h"
#include "sched/entry.h"
#include "sched/rest/bystanders.h"
#include "sched/rest/fire.h"
#include "sched/run/debug_options.h"
#include "sched/run/runtime.h"
#include "sched/run/tracing.h"
#include "sched/run_end.h"
#include "sched/spawn.h"
#include "sched/taking/hand_off.h"
#include "sched/threads/fork.h"
#include "sched/threads/overflow.h"
#include "sched/threads/uncaught.h"
#include "sched/timers.h"
#include "sched/waiter.h"
#include "stack/guard.h"
#include "trace/crash.h"

namespace magpie::sched {

namespace {
std::uint64_t generations = 0;  // only the thread that is in run()

std::int64_t slow_ns_of(const Options& options) {
  if (options.report_slow.count() != 0)
    return std::chrono::nanoseconds(options.report_slow).count();
  return DebugOptions::from_environment().slow_ns;
}
}  // namespace

Runtime::Runtime(const Options& wanted)
    : generation(++generations),
      options(wanted),
      procs_source(wanted.procs),
      homes(DebugOptions::from_environment().topology,
            wanted.pin ? cpus::Cores::read : cpus::Cores::ignore),
      records(global.chunks()),
      stacks(wanted.stack_size),
      threads(wanted.max_threads),
      pins(wanted.pin),
      schedtrace(DebugOptions::from_environment()),
      watcher(std::chrono::nanoseconds(wanted.report_blocked_after).count(), slow_ns_of(wanted)) {}

namespace {

base::Lock in_run;  // held by the thread that is in run()

Options checked(Options options) {
  if (!DebugOptions::from_environment().preempt) options.preempt = false;
  stack::check_size(options.stack_size);
  if (options.max_threads < 1) {
    throw std::invalid_argument("magpie: Options::max_threads is " +
                                std::to_string(options.max_threads) + "; at least 1 is needed");
  }
  if (options.max_preempted < 0) {
    throw std::invalid_argument("magpie: Options::max_preempted is " +
                                std::to_string(options.max_preempted) + "; 0 or more make sense");
  }
  if (!Preemption::can_use(options.preempt_signal)) {
    throw std::invalid_argument("magpie: Options::preempt_signal is " +
                                std::to_string(options.preempt_signal) +
                                ", which is no signal that can be caught for preemption");
  }
  if (options.time_slice.count() < 1) {
    throw std::invalid_argument("magpie: Options::time_slice must be at least a microsecond");
  }
  if (options.report_blocked_after.count() < 0 || options.report_slow.count() < 0) {
    throw std::invalid_argument(
        "magpie: Options::report_blocked_after and report_slow must not be negative; 0 is off");
  }
  constexpr std::chrono::hours kForEver{24 * 365};  // a few of these fit in 64 bits of nanoseconds
  options.time_slice = std::min<std::chrono::microseconds>(options.time_slice, kForEver);
  options.report_blocked_after =
      std::min<std::chrono::milliseconds>(options.report_blocked_after, kForEver);
  options.report_slow = std::min<std::chrono::microseconds>(options.report_slow, kForEver);
  return options;
}

struct Main {
  void (*body)(void*);
  void* argument;
};

void main_body(void* payload, detail::TaskOrder order) {
  if (order == detail::TaskOrder::drop) return;
  Main main = *static_cast<Main*>(payload);
  main.body(main.argument);
  M* m = current_m();
  if (m == nullptr) [[unlikely]]
    returned_in_forked_child();
  // The destructors of locals may wait, and the runtime still runs.
  if (GExtra* extra = m->current->extra) destroy_locals(*extra);
  if (current_m() == nullptr) [[unlikely]]
    returned_in_forked_child();
  // Main keeps the right for ever: no thread stops the world any more.
  while (!runtime->world.try_lock_for_end()) yield();
  Entry entry;  // main must not be stopped while it holds Idle's lock
  runtime->world.shut_down();
}

// A plain thread that joins a goroutine which will never end must not wait for ever.
void release_thread_that_joins(G* g) {
  void* waiter = nullptr;
  if (g->join.finish(waiter) != JoinWord::Owes::wake_waiter) return;
  if (auto* joiner = static_cast<Waiter*>(waiter); joiner->is_thread()) joiner->wake();
}

// Stacks of goroutines' own, until no goroutine names them any more. Each is here once, although a
// goroutine that a joiner ran in place names the joiner's stack too. Linked through the stacks, as
// there may be no memory. The last names itself, so a stack that names none is not here.
class OwnStacks {
 public:
  void add(stack::Stack* stack) {
    if (stack->next_left != nullptr) return;
    stack->next_left = first_ == nullptr ? stack : first_;
    first_ = stack;
  }
  ~OwnStacks() {
    for (stack::Stack* stack = first_; stack != nullptr;) {
      stack::Stack* next = stack->next_left == stack ? nullptr : stack->next_left;
      stack::unmap_single(stack);
      stack = next;
    }
  }

 private:
  stack::Stack* first_ = nullptr;
};

// Every M has left. Closures that never ran are destroyed, as they may own memory on the heap.
void drop_goroutines() {
  OwnStacks own_stacks;
  runtime->records.for_each([&](G* g) {
    GState state = g->state.load(base::relaxed);
    if (state == GState::free) return;
    if (g->joinable && !g->join.is_done()) release_thread_that_joins(g);
    if (state == GState::fresh || state == GState::ended)
      g->body(g->payload, detail::TaskOrder::drop);
    if (g->stack != nullptr) base::close_fiber(g->stack->fiber);
    if (g->stack != nullptr && !g->stack->pooled) own_stacks.add(g->stack);
    delete g->extra;
  });
}

G* make_main(Main main) {
  G* g = new_goroutine_outside();
  new (g->payload) Main(main);
  return g;
}

int signal_of(const Options& options) {
  return options.preempt_signal != 0 ? options.preempt_signal : SIGURG;
}

// While this lives the runtime can be found, and stack overflows are reported.
struct Installed {
  explicit Installed(Runtime& rt) {
    runtime = &rt;
    trace::change_below_crash_handlers(install_overflow_handler);
    install_quit_handler();
    using Stops = Preemption::Stops;
    rt.preemption.install(signal_of(rt.options), rt.options.preempt ? Stops::yes : Stops::no);
  }
  ~Installed() {
    remove_quit_handler();
    runtime->preemption.remove();
    runtime = nullptr;
    trace::change_below_crash_handlers(remove_overflow_handler);
  }
};

[[noreturn]] void throw_no_sysmon(int error) {
  throw std::system_error(
      error, std::generic_category(),
      "magpie: run() needs a thread that watches goroutines which block or run long, and the "
      "system refuses one; end other threads, or raise the limit on them (ulimit -u, pids.max of "
      "the cgroup)");
}

void run_with(Main main) {
  G* main_goroutine = make_main(main);
  M* m = runtime->threads.adopt_caller();
  if (int error = runtime->sysmon.start()) {
    end_m(m);
    throw_no_sysmon(error);  // nothing throws after this
  }
  runtime->threads.maker.start();
  runtime->watcher.start_if_needed();
  runtime->sysmon.hurry();  // it may look at all of them now
  P* first = runtime->ps.in_use()[0];
  first->state.store(PState::running, base::relaxed);
  begin_with(m, first);
  {
    base::Guard hold(runtime->idle.lock());
    std::span<P* const> others = runtime->ps.in_use().subspan(1);
    for (auto p = others.rbegin(); p != others.rend(); ++p) runtime->idle.give_p_locked(*p);
  }
  open_timers();
  open_to_outsiders();  // before main runs, and main may run on another thread
  start(m, main_goroutine, main_body, nullptr);
  run_loop(m);
  close_to_outsiders();
  runtime->threads.maker.stop();
  runtime->threads.join_all();
  runtime->sysmon.stop();
  runtime->watcher.stop();
  // User code destroys what timers and goroutines leave behind. So this thread is a plain thread by
  // then: its waits must not be for goroutines that will never continue.
  end_m(m);
  note_run_end(runtime->generation);
  drop_timers();
  runtime->network.release_threads();
}

}  // namespace

void forget_run() { new (&in_run) base::Lock; }

}  // namespace magpie::sched

namespace magpie::detail {

void run_main(const Options& options, void (*body)(void*), void* argument) {
  using namespace sched;
  if (current_m() != nullptr) {
    throw std::logic_error("magpie: run() inside run(); use go() to start more goroutines");
  }
  std::unique_lock hold(in_run, std::try_to_lock);
  if (!hold)
    throw std::logic_error("magpie: run() while another thread is in run(); one runtime at a time");

  PromisePause pause;
  catch_uncaught(go_on_after_uncaught);
  base::prepare_fences();
  stack::choose_guards();
  Runtime rt(checked(options));
  Installed installed(rt);
  reserve_procs(rt.procs_source.initial());
  rt.ps.set_in_use(static_cast<std::uint32_t>(rt.procs_source.initial()));
  rt.homes.look();
  rt.homes.settle(rt.homes.plan(rt.ps.count()));
  rt.pins.prepare();
  trace_begin_run();
  try {
    run_with(Main{body, argument});
  } catch (...) {  // nothing has run
    trace_end_run();
    throw;
  }
  trace_end_run();
  drop_goroutines();
  note_run_end(runtime->generation);  // again, for threads that began to wait meanwhile
  for (P* p : runtime->ps.all()) p->stacks.give_all(runtime->stacks);
}

}  // namespace magpie::detail

namespace magpie {

using namespace sched;

namespace {

// The result of f(), called by a goroutine or a plain thread; `otherwise` when no runtime runs.
template <class F, class R>
R with_runtime(F f, R otherwise) {
  if (current_m() != nullptr) return f();
  Visit visit;
  return visit ? f() : otherwise;
}

}  // namespace

// Also in a signal handler, on a thread that is between two goroutines.
std::uint64_t goroutine_id() {
  M* m = current_m();
  if (m == nullptr) return 0;
  G* g = m->current;
  return g == nullptr ? 0 : g->id;
}

int num_threads() {
  return with_runtime([]() { return runtime->threads.count(); }, 0);
}

int set_max_threads(int n) {
  if (n < 1)
    throw std::invalid_argument("magpie: set_max_threads(" + std::to_string(n) +
                                "): at least 1 is needed");
  int before = with_runtime([n]() { return runtime->threads.set_limit(n); }, 0);
  if (before == 0) throw std::logic_error("magpie: set_max_threads(): no runtime runs");
  return before;
}

std::size_t num_goroutines() {
  return with_runtime(
      []() {
        std::uint64_t ended = 0;
        std::uint64_t started = 0;
        // Count ended ones first: a goroutine that ends while we count must have been started
        // before.
        for (P* p : runtime->ps.all()) ended += p->counters.goroutines_ended.read();
        for (P* p : runtime->ps.all()) started += p->counters.goroutines_started.read();
        started += runtime->started_outside.load(base::relaxed);
        return static_cast<std::size_t>(started - ended);
      },
      std::size_t{0});
}

}  // namespace magpie
