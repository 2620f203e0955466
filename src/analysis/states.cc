#include "analysis/states.h"

#include <algorithm>
#include <utility>

#include "trace/format.h"

namespace magpie::analysis {

namespace {

constexpr std::int64_t kMostProcs = trace::kOutsideStream;  // a file may say anything

Place place_of(std::uint64_t number) {
  return number < kPlaces ? static_cast<Place>(number) : Place::ring;
}

}  // namespace

const char* text(State state) {
  switch (state) {
    case State::unknown:
      return "unknown";
    case State::runnable:
      return "runnable";
    case State::running:
      return "running";
    case State::waiting:
      return "waiting";
    case State::blocking:
      return "blocking";
    case State::without_p:
      return "runs without a P";
    case State::stopped:
      return "stopped";
    case State::ended:
      return "ended";
  }
  return "";
}

const char* text(Place place) {
  switch (place) {
    case Place::runnext:
      return "runnext slot";
    case Place::ring:
      return "ring";
    case Place::global:
      return "global queue";
    case Place::inbox:
      return "inbox";
    case Place::urgent:
      return "urgent line";
    case Place::stopped:
      return "stopped line";
    case Place::fresh:
      return "fresh";
    case Place::stolen:
      return "stolen";
  }
  return "";
}

const char* text(Source source) {
  switch (source) {
    case Source::goroutine:
      return "goroutine";
    case Source::timer:
      return "timer";
    case Source::network:
      return "network";
    case Source::plain_thread:
      return "plain thread";
  }
  return "";
}

const Goroutine* States::find(std::uint64_t number) const {
  auto found = goroutines_.find(number);
  return found == goroutines_.end() ? nullptr : &found->second;
}

Goroutine& States::at(std::uint64_t number) {
  auto [found, is_new] = goroutines_.try_emplace(number);
  if (is_new) {
    found->second.number = number;
    if (free_slots_.empty()) {
      found->second.slot = slots_++;
    } else {
      found->second.slot = free_slots_.back();
      free_slots_.pop_back();
    }
    found->second.born_ns = found->second.since_ns = now_ns_;
  }
  return found->second;
}

Proc& States::proc(std::int64_t index) {
  static thread_local Proc ignored;
  if (index < 0 || index >= kMostProcs) return ignored = {};
  if (static_cast<std::size_t>(index) >= in_use_) set_procs(index + 1);
  return procs_[index];
}

void States::set_procs(std::size_t count) {
  in_use_ = std::min<std::size_t>(count, kMostProcs);
  if (procs_.size() < in_use_) procs_.resize(in_use_, Proc{.since_ns = now_ns_});
}

std::uint64_t States::actor(const Event& event) const {
  if (event.proc >= 0 && static_cast<std::size_t>(event.proc) < procs_.size() &&
      procs_[event.proc].goroutine != 0)
    return procs_[event.proc].goroutine;
  return event.goroutine;
}

Goroutine& States::move(std::uint64_t number, State state) {
  Goroutine& g = at(number);
  Step* step = nullptr;
  for (int i = 0; i < steps_.count; ++i)
    if (steps_.items[i].now == &g) step = &steps_.items[i];
  if (step == nullptr && steps_.count < static_cast<int>(steps_.items.size())) {
    step = &steps_.items[steps_.count++];
    step->now = &g;
    step->before = g;
  }
  if (g.proc >= 0) {
    Proc& p = proc(g.proc);
    if (p.goroutine == number) p.goroutine = 0;
  }
  g.state = state;
  g.since_ns = g.placed_ns = now_ns_;
  return g;
}

void States::put_on(std::int32_t index, std::uint64_t number) {
  Proc& p = proc(index);
  if (p.state != ProcState::held) change_proc(index, ProcState::held);
  // Another one that never left, by our events: they were lost.
  if (p.goroutine != 0 && p.goroutine != number) move(p.goroutine, State::unknown);
  p.goroutine = number;
  p.searching = false;
  Goroutine& g = at(number);
  g.proc = index;
}

// There is one next slot for each P: the goroutine that was in it goes into the ring.
void States::queue(Goroutine& g, const Event& event) {
  if (g.place != Place::runnext || event.proc < 0) return;
  const std::uint64_t before = std::exchange(proc(event.proc).next, g.number);
  auto found = goroutines_.find(before);
  if (before == g.number || found == goroutines_.end()) return;
  Goroutine& displaced = found->second;
  if (displaced.state != State::runnable || displaced.place != Place::runnext) return;
  steps_.items[steps_.count++] = {&displaced, displaced};
  displaced.place = Place::ring;
  displaced.placed_ns = now_ns_;
}

void States::create(const Event& event) {
  const std::uint64_t creator = actor(event);
  Goroutine& g = move(event.args[0], State::runnable);
  g.site = event.args[1];
  g.caller = event.args[3];
  g.place = place_of(event.args[2]);
  g.creator = creator;
  g.born_ns = now_ns_;
  g.born_in_trace = true;
  g.proc = -1;
  queue(g, event);
}

void States::resume(const Event& event) {
  const std::uint64_t number = event.args[0];
  Goroutine& g = move(number, State::running);
  g.undeclared = false;
  if (event.kind == Kind::run) g.place = place_of(event.args[1]);
  put_on(event.proc, number);
}

void States::take_p(const Event& event) {
  const auto index = static_cast<std::int32_t>(std::min<std::uint64_t>(event.args[0], kMostProcs));
  const std::uint64_t why = event.args[2];
  const Goroutine* known = find(event.args[1]);
  const bool blocks = why <= 1 || (known != nullptr && known->state == State::blocking);
  Goroutine& g = move(event.args[1], blocks ? State::blocking : State::without_p);
  g.undeclared = why == 1;
  g.proc = -1;
  Proc& p = proc(index);
  p.goroutine = 0;
  change_proc(index, ProcState::handed_over);
}

void States::begin_join(const Event& event) {
  const std::uint64_t outer = actor(event);
  if (outer != 0 && outer != event.args[0]) {
    Goroutine& waits = move(outer, State::waiting);
    waits.reason = 1;  // join
    waits.object = 0;
  }
  Goroutine& g = move(event.args[0], State::running);
  g.place = Place::fresh;
  g.outer = outer;
  put_on(event.proc, event.args[0]);
}

void States::end_join(const Event& event) {
  const Goroutine* inner = find(event.args[0]);
  std::uint64_t outer = event.args[1];
  if (outer == 0 && inner != nullptr) outer = inner->outer;
  if (inner != nullptr && inner->state != State::ended) move(event.args[0], State::ended);
  if (outer == 0 || outer == event.args[0]) return;
  move(outer, State::running);
  put_on(event.proc, outer);
}

void States::take_state(const Event& event) {
  const std::uint64_t number = event.args[0];
  const auto recorded = static_cast<trace::GoState>(event.args[1]);
  const Goroutine* known = find(number);
  State state = State::unknown;
  switch (recorded) {
    case trace::GoState::free:
    case trace::GoState::ended:
      if (known != nullptr) move(number, State::ended);
      return;
    case trace::GoState::fresh:
    case trace::GoState::runnable:
      state = State::runnable;
      break;
    case trace::GoState::running:
      // Also without a P. An event that says more comes, or came.
      state = known != nullptr && known->state != State::waiting && known->state != State::runnable
                  ? known->state
                  : State::running;
      break;
    case trace::GoState::waiting:
      state = State::waiting;
      break;
    default:
      break;
  }
  const bool is_new = known == nullptr;
  Goroutine& g = at(number);
  g.site = event.args[4] != 0 ? event.args[4] : g.site;
  if (g.state != state) move(number, state);
  if (state == State::waiting) {
    g.reason = static_cast<std::uint8_t>(event.args[2]);
    g.object = event.args[3];
  }
  if (is_new && recorded == trace::GoState::fresh) g.place = Place::fresh;
  if (recorded == trace::GoState::running && event.proc >= 0) put_on(event.proc, number);
  if (recorded == trace::GoState::running && event.proc < 0 && state == State::running)
    g.state = State::without_p;
}

void States::change_proc(std::int32_t index, ProcState state) {
  Proc& p = proc(index);
  if (state == ProcState::held && p.state != ProcState::held) {
    p.held_since_ns = now_ns_;
    p.idle_before_ns = now_ns_ - p.since_ns;
  }
  if (state != p.state) p.since_ns = now_ns_;
  p.state = state;
  if (state != ProcState::held) p.searching = false;
}

void States::apply_to_proc(const Event& event) {
  switch (event.kind) {
    case Kind::proc_begin:
      change_proc(event.proc, ProcState::held);
      proc(event.proc).thread = event.args[0];
      break;
    case Kind::proc_end:
      if (proc(event.proc).goroutine != 0) move(proc(event.proc).goroutine, State::unknown);
      change_proc(event.proc, ProcState::idle);
      break;
    case Kind::thread_wake:
      if (event.args[0] == static_cast<std::uint64_t>(event.proc))
        change_proc(event.proc, ProcState::handed_over);
      break;
    case Kind::search_begin:
      change_proc(event.proc, ProcState::held);
      proc(event.proc).searching = true;
      break;
    case Kind::search_end:
      proc(event.proc).searching = false;
      break;
    case Kind::procs:
      set_procs(event.args[0]);
      break;
    case Kind::stop_world:
      world_stopped_ = true;
      break;
    case Kind::start_world:
      world_stopped_ = false;
      break;
    default:
      break;
  }
}

const States::Steps& States::apply(const Event& event) {
  for (const Step& step : steps_) {
    if (step.now->state != State::ended) continue;
    free_slots_.push_back(step.now->slot);
    goroutines_.erase(step.now->number);
  }
  steps_.count = 0;
  now_ns_ = std::max(now_ns_, event.time_ns);

  const std::uint64_t who = actor(event);
  switch (event.kind) {
    case Kind::create:
      create(event);
      break;
    case Kind::run:
    case Kind::back:
      resume(event);
      break;
    case Kind::end:
      if (who != 0) move(who, State::ended);
      break;
    case Kind::yield:
      if (who != 0) move(who, State::runnable).place = place_of(event.args[0]);
      break;
    case Kind::park:
      if (who != 0) {
        Goroutine& g = move(who, State::waiting);
        g.reason = static_cast<std::uint8_t>(event.args[0]);
        g.object = event.args[1];
      }
      break;
    case Kind::ready: {
      Goroutine& g = move(event.args[0], State::runnable);
      g.place = place_of(event.args[1]);
      queue(g, event);
      break;
    }
    case Kind::block_begin:
      if (who != 0) {
        const std::int32_t on = event.proc;
        move(who, State::blocking).undeclared = false;
        if (on >= 0) proc(on).goroutine = who;  // keeps it until it is taken
      }
      break;
    case Kind::block_end:
      if (who != 0) {
        Goroutine& g = move(who, event.proc >= 0 ? State::running : State::without_p);
        if (event.proc >= 0) put_on(event.proc, g.number);
      }
      break;
    case Kind::taken:
      take_p(event);
      break;
    case Kind::stop:
      move(event.args[0], State::stopped).place = place_of(event.args[1]);
      break;
    case Kind::let_out:
      move(event.args[0], State::without_p).proc = -1;
      break;
    case Kind::join_begin:
      begin_join(event);
      break;
    case Kind::join_end:
      end_join(event);
      break;
    case Kind::state:
      take_state(event);
      break;
    default:
      apply_to_proc(event);
      break;
  }
  return steps_;
}

}  // namespace magpie::analysis
