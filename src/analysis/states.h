// states.h: what every goroutine and every P is doing, as one event after another tells it.
//
//                 create            run, back
//     (nothing) ----------> runnable ---------> running --- end ---> ended
//                              ^  ^---- yield ----|  |
//                     ready    |                  |  | block_begin, taken
//                 waiting <------------- park ----+  v
//                                                 blocking, without_p --- stop ---> stopped
//                                                    |        ^---- let_out ----------|  |
//                                                    +------- back -----> running <- run-+
//
// States is the only place that knows what an event does to a state: the summary, the tiles and
// the exports all read the steps that it returns. It repairs what it can: a trace may begin in
// the middle of anything and may have lost events. An event that does not fit the state of its
// goroutine wins over that state.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "trace/event.h"

namespace magpie::analysis {

using trace::Event;
using trace::Kind;
using trace::Place;   // the line of a runnable goroutine
using trace::Source;  // of a wake-up

enum class State : std::uint8_t {
  unknown,    // the trace has not told yet
  runnable,   // in a line, see Place
  running,    // on a P
  waiting,    // parked, see the reason
  blocking,   // in blocking(), or found blocked: with its P until that is taken
  without_p,  // its P was taken, it runs on
  stopped,    // its thread is stopped in place
  ended,
};
const char* text(State state);

inline constexpr int kPlaces = 8;
const char* text(Place place);
const char* text(Source source);

struct Goroutine {
  std::uint64_t number = 0;
  std::uint32_t slot = 0;  // small, given to another goroutine when this one is over
  State state = State::unknown;
  Place place = Place::ring;   // while it is runnable
  std::uint8_t reason = 0;     // WaitReason, while it waits
  bool undeclared = false;     // while it blocks: without blocking()
  std::int32_t proc = -1;      // while it runs; before that, where it ran last
  std::int64_t since_ns = 0;   // in this state
  std::int64_t placed_ns = 0;  // while it is runnable: since then in this place
  std::uint64_t object = 0;    // that it waits for
  std::uint64_t site = 0;      // pc of its code: what go() was given
  std::uint64_t caller = 0;    // pc of the call of go(); 0 unknown
  std::uint64_t creator = 0;   // goroutine; 0 unknown, or a plain thread
  std::uint64_t outer = 0;     // the goroutine that runs this one in place
  std::int64_t born_ns = 0;    // or first seen
  bool born_in_trace = false;
};

enum class ProcState : std::uint8_t {
  idle,
  handed_over,
  held
};  // handed_over: no thread holds it yet

struct Proc {
  ProcState state = ProcState::idle;
  bool searching = false;
  std::uint64_t goroutine = 0;  // that runs on it
  std::uint64_t next = 0;       // that came into its next slot last, and may have left it since
  std::uint64_t thread = 0;
  std::int64_t since_ns = 0;        // in this state
  std::int64_t held_since_ns = 0;   // the last time that a thread began to hold it
  std::int64_t idle_before_ns = 0;  // and how long no thread had
};

// One goroutine changed: `before` is what it was.
struct Step {
  Goroutine* now = nullptr;
  Goroutine before;
};

class States {
 public:
  // What the event does. The steps are valid until the next call.
  struct Steps {
    std::array<Step, 3> items;
    int count = 0;
    const Step* begin() const { return items.data(); }
    const Step* end() const { return items.data() + count; }
  };
  const Steps& apply(const Event& event);

  // How many Ps are in use; also told by events of the kind procs.
  void set_procs(std::size_t count);
  std::size_t procs_in_use() const { return in_use_; }

  // The goroutine that did `event`: by the reader's word, or that which runs on its P.
  std::uint64_t actor(const Event& event) const;

  const Goroutine* find(std::uint64_t number) const;
  const std::unordered_map<std::uint64_t, Goroutine>& goroutines() const { return goroutines_; }
  const std::vector<Proc>& procs() const { return procs_; }
  std::uint32_t slots() const { return slots_; }  // all slots are below it
  std::int64_t now_ns() const { return now_ns_; }
  bool is_world_stopped() const { return world_stopped_; }

 private:
  Goroutine& at(std::uint64_t number);
  Proc& proc(std::int64_t index);
  // Puts `goroutine` into `state`, notes the step, and takes it off the P that it ran on.
  Goroutine& move(std::uint64_t number, State state);
  void put_on(std::int32_t index, std::uint64_t number);
  // The goroutine came into its place by this event.
  void queue(Goroutine& g, const Event& event);
  void create(const Event& event);
  void take_p(const Event& event);
  void begin_join(const Event& event);
  void end_join(const Event& event);
  void resume(const Event& event);
  void take_state(const Event& event);
  void change_proc(std::int32_t index, ProcState state);
  void apply_to_proc(const Event& event);

  std::unordered_map<std::uint64_t, Goroutine> goroutines_;
  std::vector<Proc> procs_;
  std::size_t in_use_ = 0;
  std::vector<std::uint32_t> free_slots_;
  std::uint32_t slots_ = 0;
  Steps steps_;
  std::int64_t now_ns_ = 0;
  bool world_stopped_ = false;
};

}  // namespace magpie::analysis
