// reader_opening.cc: the events with which reading begins: which Ps are held, and which goroutines
// live. A trace that begins in the middle of a run() tells it in part by its `state` events, in
// part by what its first events imply.
#include <utility>

#include "trace/reader_parts.h"

namespace magpie::trace {
namespace {

using reading::Before;

// What an event says of the state in which its goroutines were before it.
struct Implied {
  std::uint64_t goroutine = 0;
  bool existed = true;
  GoState state = GoState::runnable;
  std::int32_t proc = kOutside;
};

// `running`: the goroutine on the event's P. Returns how many goroutines it says something of.
std::size_t implied_by(const Event& event, std::uint64_t running, Implied (&out)[2]) {
  std::uint64_t g = event.args[0];
  switch (event.kind) {
    case Kind::create:
      out[0] = {g, false};
      return 1;
    case Kind::run:
    case Kind::let_out:
      out[0] = {g};
      return 1;
    case Kind::ready:
      out[0] = {g, true, GoState::waiting};
      return 1;
    case Kind::back:
    case Kind::stop:
      out[0] = {g, true, GoState::running};
      return 1;
    case Kind::taken:
      if (g >= kOutsideStream) return 0;  // there is no such P: the file is damaged
      out[0] = {event.args[1], true, GoState::running, static_cast<std::int32_t>(g)};
      return 1;
    case Kind::join_begin:
      out[0] = {running, true, GoState::running, event.proc};
      out[1] = {g};
      return 2;
    case Kind::join_end:
      out[0] = {g, true, GoState::running, event.proc};
      out[1] = {event.args[1], true, GoState::waiting};
      return 2;
    default:
      out[0] = {running, true, GoState::running, event.proc};
      return 1;
  }
}

std::uint64_t running_after(const Event& event, std::uint64_t running) {
  switch (event.kind) {
    case Kind::run:
    case Kind::back:
    case Kind::join_begin:
      return event.args[0];
    case Kind::join_end:
      return event.args[1];
    case Kind::end:
    case Kind::yield:
    case Kind::park:
    case Kind::proc_begin:
    case Kind::proc_end:
      return 0;
    default:
      return running;
  }
}

// The events of the generation's states blocks, by kind.
struct Recorded {
  std::vector<Event> states, names;
  std::map<std::int32_t, Event> procs;  // that are held
};

Recorded read_states(const reading::Generation& generation, const Storage& storage,
                     Strings& strings) {
  Recorded recorded;
  for (const BlockRef& block : generation.states) {
    Stream stream(kOutside, {block}, storage, strings);
    while (stream.advance()) {
      Event event = stream.head();
      if (event.kind == Kind::proc_begin && event.args[1] < kOutsideStream) {
        event.proc = static_cast<std::int32_t>(event.args[1]);
        recorded.procs[event.proc] = event;
      }
      if (event.kind == Kind::state) recorded.states.push_back(event);
      if (event.kind == Kind::name) recorded.names.push_back(event);
    }
  }
  return recorded;
}

// A goroutine without events of its own is in its recorded state all the time.
void add_recorded(const Event& event, Before& before) {
  if (before.ticks == 0) {
    auto state = static_cast<GoState>(event.args[1]);
    before.existed = state != GoState::free && state != GoState::ended;
    before.state = state == GoState::fresh ? GoState::runnable : state;
    if (state == GoState::running && event.args[3] != 0 && event.args[3] <= kOutsideStream)
      before.proc = static_cast<std::int32_t>(event.args[3]) - 1;
  }
  before.recorded = event;
}

Event state_event(std::uint64_t g, const Before& before) {
  Event event = before.recorded;
  bool same = static_cast<GoState>(event.args[1]) == before.state;
  event.kind = Kind::state;
  event.proc = before.proc;
  event.goroutine = 0;
  event.args[0] = g;
  event.args[1] = static_cast<std::uint64_t>(before.state);
  if (!same || before.state == GoState::running) event.args[2] = event.args[3] = 0;
  return event;
}

}  // namespace

// Finds what the first event of each goroutine says, and which Ps are held: the first event of a
// held P is not proc_begin.
GoroutineMap<reading::Before> Reader::Parts::look_ahead(const Generation& generation,
                                                        std::map<std::int32_t, Event>& procs) {
  GoroutineMap<Before> befores;
  for (const auto& [number, blocks] : generation.streams) {
    std::int32_t proc = proc_of(number);
    Stream stream = stream_of(proc, blocks);
    std::uint64_t running = 0;
    bool at_start = true;
    while (stream.advance()) {
      const Event& event = stream.head();
      if (stream.is_first_of_block()) running = stream.current_at_block();
      if (at_start && proc != kOutside) {
        if (event.kind == Kind::proc_begin) {
          procs.erase(proc);
        } else {
          procs.try_emplace(proc, Event{.kind = Kind::proc_begin, .proc = proc});
        }
      }
      at_start = false;
      Implied implied[2];
      std::size_t count = implied_by(event, running, implied);
      for (std::size_t i = 0; i < count; ++i) {
        if (implied[i].goroutine == 0) continue;
        Before& before = befores.need(implied[i].goroutine);
        if (before.ticks != 0 && before.ticks <= stream.ticks()) continue;
        before.ticks = std::max<std::uint64_t>(stream.ticks(), 1);
        before.existed = implied[i].existed;
        before.state = implied[i].state;
        before.proc = implied[i].proc;
      }
      running = running_after(event, running);
    }
  }
  return befores;
}

// Makes the events that come first.
void Reader::Parts::make_opening(const Generation& generation) {
  Recorded recorded = read_states(generation, *index->storage, strings);
  GoroutineMap<Before> befores = look_ahead(generation, recorded.procs);
  for (const Event& event : recorded.states) {
    if (event.args[0] != 0) add_recorded(event, befores.need(event.args[0]));
  }
  for (auto& [proc, event] : recorded.procs) opening.push_back(event);
  befores.for_each([this](std::uint64_t g, Before& before) {
    if (before.existed) opening.push_back(state_event(g, before));
  });
  for (Event& event : recorded.names) {
    Before* its = befores.find(event.args[0]);
    if (its != nullptr && its->existed) opening.push_back(event);
  }
  for (Event& event : opening) event.time_ns = last_ns;
  std::stable_sort(opening.begin(), opening.end(), [](const Event& a, const Event& b) {
    auto rank = [](const Event& event) { return event.kind == Kind::proc_begin ? 0 : 1; };
    return rank(a) != rank(b) ? rank(a) < rank(b) : a.args[0] < b.args[0];
  });
  enter_opening();
}

// The states in which the opening finds the goroutines.
void Reader::Parts::enter_opening() {
  for (const Event& event : opening) {
    if (event.kind != Kind::state) continue;
    std::uint64_t g = event.args[0];
    States::Goroutine& its = states.goroutines().need(g);
    switch (static_cast<GoState>(event.args[1])) {
      case GoState::running:
        its.state = States::State::without_p;
        if (event.proc != kOutside && states.current(event.proc) == 0) {
          its = {States::State::running, event.proc};
          states.set_current(event.proc, g);
        }
        break;
      case GoState::waiting:
        its.state = States::State::waiting;
        break;
      default:
        its.state = States::State::runnable;
    }
  }
}

}  // namespace magpie::trace
