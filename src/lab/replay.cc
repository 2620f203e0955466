#include "lab/replay.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "analysis/states.h"

namespace magpie::lab {
namespace {

using analysis::State;
using trace::Kind;

class Player : public Load {
 public:
  explicit Player(const Recording& recording)
      : recording_(recording), next_(recording.goroutines()) {}

  void begin(Machine& machine) override {
    for (std::uint32_t g = 0; g < recording_.goroutines(); ++g) task_of_.push_back(machine.make());
    for (std::size_t i = 0; i < task_of_.size(); ++i) {
      const TaskId task = task_of_[i];
      if (task >= goroutine_of_.size()) goroutine_of_.resize(task + 1);
      goroutine_of_[task] = static_cast<std::uint32_t>(i);
    }
    const auto& outside = recording_.outside();
    for (std::size_t i = 0; i < outside.size(); ++i) machine.call_at(outside[i].time, i);
  }

  void called(Machine& machine, std::uint64_t number) override {
    const Recording::Outside& event = recording_.outside()[number];
    const TaskId task = task_of_[event.goroutine];
    if (event.is_birth)
      machine.arrive(task);
    else
      machine.wake_from_outside(task);
  }

  Step step(Machine&, TaskId task) override {
    const std::uint32_t g = goroutine_of_[task];
    const auto& acts = recording_.acts()[g];
    if (next_[g] == acts.size()) return {0, What::end};
    const Recording::Act& act = acts[next_[g]++];
    const bool has_other = act.what == What::spawn || act.what == What::wake;
    return {act.compute, act.what, has_other ? task_of_[act.other] : kNoTask, act.sleep_ns};
  }

 private:
  const Recording& recording_;
  std::vector<std::size_t> next_;
  std::vector<TaskId> task_of_;
  std::vector<std::uint32_t> goroutine_of_;
};

}  // namespace

// Turns the events of a trace into acts of goroutines.
class Recording::Maker {
 public:
  Maker(Recording& result, trace::Reader& reader) : result_(result), reader_(reader) {
    result_.procs_ = std::max<std::uint32_t>(1, reader.info().procs);
    states_.set_procs(result_.procs_);
  }

  void run() {
    trace::Event event;
    while (reader_.next(event)) {
      if (event.kind == Kind::create || event.kind == Kind::ready) note_wake(event);
      for (const analysis::Step& step : states_.apply(event)) note_step(step, event.time_ns);
    }
    std::stable_sort(result_.outside_.begin(), result_.outside_.end(),
                     [](const auto& a, const auto& b) { return a.time < b.time; });
  }

 private:
  struct Note {
    std::uint32_t index = 0;
    Ns runs_since = -1;   // -1: it does not run
    Ns ready_since = -1;  // -1: it is not known to stand in a line
    Ns parked_at = 0;
  };

  std::pair<Note&, bool> note_of(std::uint64_t number) {
    const auto [at, is_new] = notes_.try_emplace(number);
    if (is_new) {
      at->second.index = static_cast<std::uint32_t>(result_.acts_.size());
      result_.acts_.emplace_back();
    }
    return {at->second, is_new};
  }

  // What the goroutine computed since its last act, and what it does now.
  void act(Note& note, Ns now, What what, std::uint32_t other) {
    const Ns compute = note.runs_since < 0 ? 0 : now - note.runs_since;
    if (note.runs_since >= 0) note.runs_since = now;
    result_.acts_[note.index].push_back({compute, what, other, 0});
  }

  void note_wake(const trace::Event& event) {
    const Ns now = event.time_ns;
    const std::uint64_t actor = states_.actor(event);
    const auto [other, is_new] = note_of(event.args[0]);
    const bool is_birth = event.kind == Kind::create || is_new;
    const bool is_timer = event.kind == Kind::ready &&
                          event.args[2] == static_cast<std::uint64_t>(trace::Source::timer);
    const bool from_goroutine =
        actor != 0 && (event.kind == Kind::create ||
                       event.args[2] == static_cast<std::uint64_t>(trace::Source::goroutine));
    auto& acts = result_.acts_[other.index];
    if (is_timer && !is_birth && !acts.empty() && acts.back().what == What::park) {
      acts.back().what = What::sleep;
      acts.back().sleep_ns = now - other.parked_at;
    } else if (from_goroutine) {
      act(note_of(actor).first, now, is_birth ? What::spawn : What::wake, other.index);
    } else {
      result_.outside_.push_back({now, other.index, is_birth});
    }
    other.ready_since = now;
  }

  void note_step(const analysis::Step& step, Ns now) {
    if (step.now == nullptr) return;
    const State before = step.before.state, after = step.now->state;
    if (before == after) return;
    const auto [note, is_new] = note_of(step.now->number);
    if (is_new && after != State::ended)  // it lived before the trace began
      result_.outside_.push_back({now, note.index, true});
    if (before == State::running) {
      const bool ends = after == State::ended;
      const bool yields = after == State::runnable || after == State::stopped;
      act(note, now, ends ? What::end : yields ? What::yield : What::park, 0);
      note.parked_at = now;
      note.ready_since = yields ? now : -1;
      note.runs_since = -1;
    }
    if (after == State::running) {
      const bool was_away = before == State::blocking || before == State::without_p;
      if (was_away) result_.outside_.push_back({now, note.index, false});
      if (note.ready_since >= 0) result_.latency_.add(now - note.ready_since);
      note.ready_since = -1;
      note.runs_since = now;
    }
  }

  Recording& result_;
  trace::Reader& reader_;
  analysis::States states_;
  std::unordered_map<std::uint64_t, Note> notes_;
};

Recording record(trace::Reader& reader) {
  Recording result;
  Recording::Maker(result, reader).run();
  return result;
}

Result replay(const Recording& recording, const Setup& setup) {
  Player player(recording);
  return Machine(setup, player).run();
}

}  // namespace magpie::lab
