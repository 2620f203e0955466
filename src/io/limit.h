// limit.h: what ends a call on a descriptor early, besides the descriptor's own deadlines: a
// context.
//
// A call looks at its limit before each attempt, which costs a load. It asks for the stop token
// only when it has to wait. The token's callback then wakes the caller as an event would, and the
// caller finds that the limit is over.
#pragma once

#include <cstddef>
#include <stop_token>

#include <magpie/mutex.h>

namespace magpie::io {

// How a call ended.
struct Outcome {
  std::size_t count = 0;
  int error = 0;  // 0: well; else an error number of the system
};

class Limit {
 public:
  // 0: not over; else the error that the call ends with. Never blocks.
  virtual int error() const noexcept = 0;
  // Is asked to stop once error() is not 0.
  virtual std::stop_token stop_token() const = 0;
  // Blocks until the caller has the mutex. False: the limit was over first.
  [[nodiscard]] virtual bool lock(Mutex& mutex) const = 0;

 protected:
  ~Limit() = default;
};

}  // namespace magpie::io
