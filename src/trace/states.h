// states.h: which events can happen next, given those before: the states of goroutines.
//
//                 create                       run                 park
//       (nothing) -----> runnable ---------------------> running -------> waiting
//                         ^  ^ |                          | | |              |
//                         |  | | yield                    | | +- end: gone   | ready
//                         |  +-|--------------------------+ |                |
//                         +----|----------------------------|----------------+
//                         |    | let_out         back       | taken
//                         |    +-----> without a P ---------|---> running
//                         |   stop       |  ^               |
//                         +--------------+  +---------------+
//
//   join_begin   the running goroutine waits, and its child, which was runnable, runs in its place
//   join_end     the child is gone, and the parent runs again
#pragma once

#include <cstdint>
#include <vector>

#include "trace/event.h"
#include "trace/goroutine_map.h"

namespace magpie::trace {

class States {
 public:
  enum class State : std::uint8_t { runnable, running, without_p, waiting };
  struct Goroutine {
    State state = State::runnable;
    std::int32_t proc = kOutside;  // while running
  };

  // Whether the event can follow. An event about a goroutine that is not known can.
  [[nodiscard]] bool can_follow(const Event& event);

  // Notes the event, possible or not, and fills in event.goroutine.
  void follow(Event& event);

  std::uint64_t current(std::int32_t proc) const {
    auto index = static_cast<std::size_t>(proc);
    return index < current_.size() ? current_[index] : 0;
  }
  void set_current(std::int32_t proc, std::uint64_t goroutine);

  GoroutineMap<Goroutine>& goroutines() { return goroutines_; }
  void clear();

 private:
  bool is_or_unknown(std::uint64_t g, State state);
  // Takes g from the P it runs on, and the P's goroutine from it.
  void put_on(std::int32_t proc, std::uint64_t g);
  void move(std::uint64_t g, State to);

  GoroutineMap<Goroutine> goroutines_;
  std::vector<std::uint64_t> current_;  // by P
};

}  // namespace magpie::trace
