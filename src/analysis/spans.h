// spans.h: from events to spans: which goroutine is on a P from when until when. For pyramids, timelines
// and exports.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/pyramid.h"
#include "analysis/states.h"

namespace magpie::analysis {

class SpanMaker {
 public:
  using What = Pyramid::What;

  // Call after the event was applied. f(proc, what, goroutine, begin_ns, end_ns) gets spans that end.
  template <class F>
  void note(const States& states, const Event& event, F&& f) {
    if (open_.size() < states.procs().size()) open_.resize(states.procs().size());
    if (event.proc >= 0) update(states, event.proc, f);
    if (event.kind == Kind::taken && event.args[0] < open_.size()) update(states, event.args[0], f);
  }

  // Ends all spans.
  template <class F>
  void finish(std::int64_t end_ns, F&& f) {
    for (std::size_t i = 0; i < open_.size(); ++i) end(i, end_ns, f);
  }

 private:
  struct Open {
    bool is_open = false;
    What what = What::running;
    std::uint64_t goroutine = 0;
    std::int64_t begin_ns = 0;
  };

  template <class F>
  void end(std::size_t index, std::int64_t end_ns, F& f) {
    Open& open = open_[index];
    if (open.is_open) f(index, open.what, open.goroutine, open.begin_ns, end_ns);
    open.is_open = false;
  }

  template <class F>
  void update(const States& states, std::size_t index, F& f) {
    if (index >= states.procs().size()) return;
    const Proc& p = states.procs()[index];
    Open now;
    now.is_open = p.goroutine != 0 || p.searching;
    now.goroutine = p.goroutine;
    now.begin_ns = states.now_ns();
    if (p.goroutine == 0) {
      now.what = What::searching;
    } else if (const Goroutine* g = states.find(p.goroutine)) {
      if (g->state == State::blocking) now.what = What::blocking;
    }
    const Open& was = open_[index];
    if (was.is_open == now.is_open &&
        (!now.is_open || (was.what == now.what && was.goroutine == now.goroutine)))
      return;
    end(index, states.now_ns(), f);
    open_[index] = now;
  }

  std::vector<Open> open_;  // by P
};

}  // namespace magpie::analysis
