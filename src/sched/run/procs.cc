#include "sched/run/procs.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

#include <magpie/runtime.h>

#include "base/clock.h"
#include "cpus/affinity.h"
#include "cpus/default_procs.h"
#include "sched/entry.h"
#include "sched/run/runtime.h"
#include "sched/run/tracing.h"
#include "sched/taking/hand_off.h"

namespace magpie::sched {
namespace {

// Of a program that does not follow quotas. Finding the files takes longer than a short run(), so
// it is left to the maker of threads, and to programs that run for a while.
constexpr std::int64_t kFirstLookNs = 100'000'000;

std::string& root_of_files() {
  static std::string root;
  return root;
}

std::int64_t look_every_ns = kLookEveryNs;  // fixed while a runtime runs

std::int64_t next_look_ns() { return base::coarse_now_ns() + look_every_ns; }

int procs_from_environment() {
  const char* text = std::getenv("MAGPIE_PROCS");
  if (text == nullptr) return 0;
  std::string_view digits = text;
  int number = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size() || number < 1) {
    throw std::invalid_argument("magpie: MAGPIE_PROCS=" + std::string(digits) +
                                " is no positive number; unset it or use, say, MAGPIE_PROCS=4");
  }
  return number;
}

// A quota for the trace, which has no fractions.
std::uint64_t milli_cpus(double quota) {
  constexpr double kMost = 1e9;  // far more than any machine has
  return static_cast<std::uint64_t>(std::min(quota, kMost) * 1000 + 0.5);
}

// The world is stopped; the Ps exist, one for each home. `self` holds a P.
void change_procs(M* self, std::span<const cpus::Home> homes) {
  auto n = static_cast<std::uint32_t>(homes.size());
  for (P* p : runtime->ps.in_use().subspan(std::min<std::size_t>(n, runtime->ps.count()))) {
    move_queue_to_global(p);
    p->records.give_all(runtime->records);
    p->stacks.give_all(runtime->stacks);
    p->timers.move_all_to(runtime->ps.in_use()[0]->timers);
    p->state.store(PState::unused, base::relaxed);
  }
  runtime->ps.set_in_use(n);
  runtime->homes.settle(homes);
  if (self != nullptr && self->p->state.load(base::relaxed) == PState::unused) {
    P* old = self->p;
    self->p = runtime->ps.in_use()[0];
    self->p->state.store(PState::running, base::relaxed);
    std::int64_t now = base::now_ns();
    if (traced()) trace_taken(old, id_of_current(self), trace::Why::world_stops);
    old->end_hold(now);
    self->p->begin_hold(self, now);
    if (traced()) {
      trace_proc_begin(self);
      trace_back(self);
    }
  }
  if (self != nullptr) runtime->pins.bind(self);
  if (traced()) trace_outside(Kind::procs, n);
}

}  // namespace

void set_file_root(std::string root, std::int64_t every_ns) {
  root_of_files() = std::move(root);
  look_every_ns = every_ns;
}

const std::string& file_root() { return root_of_files(); }

ProcsSource::ProcsSource(int wanted)
    : cpus_at_start_(cpus::affinity_cpus()),
      initial_(wanted),
      follows_(false),
      cpus_(cpus_at_start_) {
  if (wanted < 0) {
    throw std::invalid_argument("magpie: Options::procs is " + std::to_string(wanted) +
                                "; it must be positive, or 0 for the default");
  }
  if (initial_ == 0) initial_ = procs_from_environment();
  if (initial_ != 0) {
    const std::int64_t wait_ns = std::min(kFirstLookNs, look_every_ns);
    next_look_ns_.store(base::coarse_now_ns() + wait_ns, base::relaxed);
    return;
  }
  initial_ = look();
  follows_.store(true, base::relaxed);
  next_look_ns_.store(next_look_ns(), base::relaxed);
}

int ProcsSource::look() {
  if (quotas_ == nullptr) quotas_ = std::make_unique<cpus::QuotaReader>(file_root());
  const int cpus = cpus::affinity_cpus();  // of the calling thread, which is never pinned
  const std::optional<double> quota = quotas_->read();
  cpus_.store(cpus, base::relaxed);
  quota_.store(quota.value_or(0), base::relaxed);
  publish(quotas_->throttling());
  return cpus::default_procs(cpus, quota);
}

void ProcsSource::publish(const cpus::Throttling& now) {
  const cpus::Throttling before = throttling();
  if (now == before) return;
  periods_.add(now.periods - before.periods);
  throttled_periods_.add(now.throttled_periods - before.throttled_periods);
  throttled_ns_.add(now.throttled_ns - before.throttled_ns);
  if (!traced()) return;
  trace_outside(Kind::quota, now.periods - before.periods,
                now.throttled_periods - before.throttled_periods,
                now.throttled_ns - before.throttled_ns, milli_cpus(quota()));
}

cpus::Throttling ProcsSource::throttling() const {
  return {periods_.read(), throttled_periods_.read(), throttled_ns_.read()};
}

void reserve_procs(int n) {
  auto memory = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  if (static_cast<std::uint64_t>(n) > memory / 4 / sizeof(P)) {
    throw std::invalid_argument("magpie: " + std::to_string(n) + " procs need " +
                                std::to_string(static_cast<std::uint64_t>(n) * sizeof(P) >> 20) +
                                " MiB, more than a quarter of this machine's memory; use fewer");
  }
  std::size_t before = runtime->ps.all().size();
  runtime->ps.grow_to(static_cast<std::size_t>(n));
  if (runtime->can_stop_long_runners()) return;
  for (P* p : runtime->ps.all().subspan(before)) p->set_nothing_aside();
}

bool procs_refresh_is_due() {
  ProcsSource& source = runtime->procs_source;
  return base::coarse_now_ns() >= source.next_look_ns_.load(base::relaxed);
}

void refresh_procs() {
  ProcsSource& source = runtime->procs_source;
  if (!runtime->world.try_lock()) return;
  source.next_look_ns_.store(next_look_ns(), base::relaxed);
  try {
    auto wanted = static_cast<std::uint32_t>(source.look());
    source.has_moved_ |= runtime->homes.look();
    const std::uint32_t n = source.follows_.load(base::relaxed) ? wanted : runtime->ps.count();
    if (n != runtime->ps.count() || source.has_moved_) {
      reserve_procs(static_cast<int>(n));
      const std::vector<cpus::Home> homes = runtime->homes.plan(n);
      runtime->world.stop(nullptr);
      if (std::exchange(source.has_moved_, false)) runtime->pins.prepare();
      change_procs(nullptr, homes);
      runtime->world.start(nullptr);
    }
  } catch (const std::exception&) {
    // No memory, or too little for so many Ps. All stays as it was, and the next look tries again.
  }
  runtime->world.unlock();
}

}  // namespace magpie::sched

namespace magpie {

using namespace sched;

int procs() {
  if (current_m() != nullptr) return static_cast<int>(runtime->ps.count());
  Visit visit;
  return visit ? static_cast<int>(runtime->ps.count()) : 0;
}

int set_procs(int n) {
  if (n < 1)
    throw std::invalid_argument("magpie: set_procs(" + std::to_string(n) +
                                "): at least 1 is needed");
  std::optional<Visit> visit;
  if (current_m() == nullptr) {
    visit.emplace();
    if (!*visit) throw std::logic_error("magpie: set_procs(): no runtime runs");
  }
  while (!runtime->world.try_lock()) {
    if (runtime->world.ending() && visit)
      throw std::logic_error("magpie: set_procs(): the runtime ends");
    yield();  // so that the thread that has the right can stop us
  }
  std::vector<cpus::Home> homes;
  try {
    reserve_procs(n);  // nothing is allocated while the world is stopped
    homes = runtime->homes.plan(static_cast<std::uint32_t>(n));
  } catch (...) {
    runtime->world.unlock();
    throw;  // the number stays as it was, and goes on to follow quotas if it did
  }
  runtime->procs_source.fix();
  Entry entry;
  M* m = entry.m();
  std::uint32_t before = runtime->ps.count();
  runtime->world.stop(m);
  change_procs(m, homes);
  runtime->world.start(m);
  runtime->world.unlock();
  return static_cast<int>(before);
}

int num_cpu() {
  if (current_m() != nullptr) return runtime->procs_source.cpus_at_start();
  return cpus::affinity_cpus();
}

}  // namespace magpie
