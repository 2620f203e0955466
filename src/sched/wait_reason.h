// wait_reason.h: why a goroutine waits, in the words that dumps and traces use.
#pragma once

#include <cstdint>

namespace magpie::sched {

enum class WaitReason : std::uint8_t {
  none,
  join,              // JoinHandle::join
  wait_group,        // WaitGroup::wait
  sleep,             // sleep_for, sleep_until
  chan_send,         // Chan::send
  chan_receive,      // Chan::recv
  nil_chan_send,     // on the nil channel: for ever
  nil_chan_receive,  //
  select,            // select, Selector::select
  select_no_cases,   // without a case that could ever run: for ever
  mutex,             // Mutex::lock
  rw_mutex_read,     // RWMutex::lock_shared
  rw_mutex_write,    // RWMutex::lock
  cond_var,          // CondVar::wait
  semaphore,         // Semaphore::acquire
  once,              // Once::call, while another goroutine calls
  io_read,           // a descriptor, until it can be read from
  io_write,          // the same, written to
  join_in_place,     // JoinHandle::join, which runs the goroutine itself
};

// A byte has room for the reason and for the mark of a dump that has seen the wait. The next park()
// writes a reason without a mark. So a mark that is still there belongs to this wait.
inline constexpr std::uint8_t kReasonBits = 0x1f;
inline constexpr int kMarkShift = 5;

inline WaitReason without_mark(WaitReason reason) {
  return static_cast<WaitReason>(static_cast<std::uint8_t>(reason) & kReasonBits);
}

inline const char* text(WaitReason reason) {
  switch (reason) {
    case WaitReason::none:
      return "";
    case WaitReason::join:
      return "join";
    case WaitReason::wait_group:
      return "WaitGroup wait";
    case WaitReason::sleep:
      return "sleep";
    case WaitReason::chan_send:
      return "chan send";
    case WaitReason::chan_receive:
      return "chan receive";
    case WaitReason::nil_chan_send:
      return "chan send (nil chan)";
    case WaitReason::nil_chan_receive:
      return "chan receive (nil chan)";
    case WaitReason::select:
      return "select";
    case WaitReason::select_no_cases:
      return "select (no cases)";
    case WaitReason::mutex:
      return "Mutex lock";
    case WaitReason::rw_mutex_read:
      return "RWMutex lock_shared";
    case WaitReason::rw_mutex_write:
      return "RWMutex lock";
    case WaitReason::cond_var:
      return "CondVar wait";
    case WaitReason::semaphore:
      return "Semaphore acquire";
    case WaitReason::once:
      return "Once call";
    case WaitReason::io_read:
      return "IO wait (read)";
    case WaitReason::io_write:
      return "IO wait (write)";
    case WaitReason::join_in_place:
      return "join";
  }
  return "unknown";
}

}  // namespace magpie::sched
