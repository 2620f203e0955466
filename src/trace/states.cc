#include "trace/states.h"

namespace magpie::trace {

bool States::is_or_unknown(std::uint64_t g, State state) {
  Goroutine* known = goroutines_.find(g);
  return known == nullptr || known->state == state;
}

bool States::can_follow(const Event& event) {
  std::uint64_t g = event.args[0];
  std::uint64_t running = current(event.proc);
  switch (event.kind) {
    case Kind::run:
      return running == 0 && is_or_unknown(g, State::runnable);
    case Kind::back:
      return running == 0 && is_or_unknown(g, State::without_p);
    case Kind::ready:
      return is_or_unknown(g, State::waiting);
    case Kind::stop:
      return is_or_unknown(g, State::without_p);
    case Kind::let_out:
      return is_or_unknown(g, State::runnable);
    case Kind::taken: {
      Goroutine* known = goroutines_.find(event.args[1]);
      if (known == nullptr) return true;
      return known->state == State::running &&
             known->proc == static_cast<std::int32_t>(event.args[0]);
    }
    case Kind::join_begin:
      return running != 0 && is_or_unknown(g, State::runnable);
    case Kind::join_end:
      return running == g;
    case Kind::end:
    case Kind::yield:
    case Kind::park:
      return running != 0;
    case Kind::proc_begin:
    case Kind::proc_end:
      return running == 0;
    default:
      return true;
  }
}

void States::set_current(std::int32_t proc, std::uint64_t goroutine) {
  if (proc < 0) return;
  auto index = static_cast<std::size_t>(proc);
  if (index >= current_.size()) {
    if (goroutine == 0) return;
    current_.resize(index + 1);
  }
  current_[index] = goroutine;
}

void States::put_on(std::int32_t proc, std::uint64_t g) {
  if (g == 0) return;
  if (std::uint64_t other = current(proc); other != 0 && other != g) move(other, State::without_p);
  move(g, State::running);
  goroutines_.need(g).proc = proc;
  set_current(proc, g);
}

void States::move(std::uint64_t g, State to) {
  if (g == 0) return;
  Goroutine& its = goroutines_.need(g);
  if (its.state == State::running && current(its.proc) == g) set_current(its.proc, 0);
  its.state = to;
  its.proc = kOutside;
}

void States::follow(Event& event) {
  std::uint64_t g = event.args[0];
  std::uint64_t running = current(event.proc);
  event.goroutine = running;
  switch (event.kind) {
    case Kind::create:
      return move(g, State::runnable);
    case Kind::run:
    case Kind::back:
      event.goroutine = g;
      return put_on(event.proc, g);
    case Kind::end:
      set_current(event.proc, 0);
      return goroutines_.erase(running);
    case Kind::yield:
      return move(running, State::runnable);
    case Kind::park:
      return move(running, State::waiting);
    case Kind::ready:
    case Kind::stop:
      return move(g, State::runnable);
    case Kind::let_out:
      return move(g, State::without_p);
    case Kind::taken:
      return move(event.args[1], State::without_p);
    case Kind::join_begin:
      move(running, State::waiting);
      return put_on(event.proc, g);
    case Kind::join_end:
      move(g, State::waiting);
      goroutines_.erase(g);
      return put_on(event.proc, event.args[1]);
    case Kind::proc_begin:
    case Kind::proc_end:
      return move(running, State::without_p);
    default:
      return;
  }
}

void States::clear() {
  goroutines_.clear();
  current_.clear();
}

}  // namespace magpie::trace
