// recording.h: what the files of the recorder share. Only they include it.
//
//   recorder.cc          the door: recording begins and ends; a stream needs a block
//   recorder_setup.cc    memory, thread, clocks and handlers of a recording
//   recorder_file.cc     full blocks go to the file, generation after generation
//   recorder_flight.cc   a snapshot of the blocks, and the last words of a crash
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>
#include <string_view>

#include "base/atomic.h"
#include "base/event.h"
#include "base/lock.h"
#include "trace/buffer.h"
#include "trace/recorder.h"

namespace magpie::trace::recording {

inline constexpr std::size_t kGenerationBytes = std::size_t{16} << 20;

struct State {
  Plan plan;
  Host host{};
  Instant origin;
  std::uint64_t ticks_per_second = 0;
  std::int64_t wall_ns = 0;
  // guarded by `switching`
  bool is_ready = false;      // set_up() is done
  bool is_running = false;    // between switch_on() and switch_off()
  bool begin_is_due = false;  // from switch_on() to write_beginning()
  bool end_is_due = false;    // from switch_off() to write_end()
  bool is_ending = false;     // from begin_to_finish()
  Sums end_totals{};          // when it was switched off
  std::uint32_t procs = 0;
  int first_proc = kOutside;  // whose buffer was told at switch_on() what runs there
  std::string prologue;       // flight: what the last words of a crash begin with

  // the blocks
  Blocks blocks;
  std::byte* memory = nullptr;
  std::size_t block_count = 0;

  // the file
  int fd = -1;
  off_t good_bytes = 0;  // of whole blocks
  std::size_t generation_bytes = 0;
  std::size_t next_generation_at = kGenerationBytes;
  std::uint64_t lost_in_file = 0;
  std::string failure;  // why a block could not be written; empty: all were

  // the thread
  pthread_t thread{};
  base::Atomic<bool> stop{false};  // atomic, a hint: set before the event
};

// For the thread. Not in State: a handler of the signal may run late, on a thread that the kernel
// kept waiting since before the handler was removed, and the State is gone by then.
extern base::Event wake_up;
extern base::Atomic<bool> signalled;  // atomic, a hint: a signal asks for a snapshot

// For everything but the blocks. Its holder may block, and a goroutine that holds it may move to
// another thread. Nobody takes it inside the runtime.
extern base::UncheckedLock control;
// For `the_recording` and State::is_running, inside the runtime too.
extern base::Lock switching;
extern State* the_recording;  // from prepare() to finish()

class Control {
 public:
  Control() { control.lock(); }
  ~Control() { control.unlock(); }
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;
};

inline Block* block_at(std::size_t index) {
  return std::launder(reinterpret_cast<Block*>(the_recording->memory + index * kBlockBytes));
}

inline std::string with_reason(const std::string& what) {
  return what + ": " + std::strerror(errno);
}

// ---- recorder_setup.cc

// Empty, or what went wrong.
std::string set_up();
void tear_down();
void take_signals();
void give_back_signals();

// ---- recorder_file.cc. By the holder of `control`

std::string begin_payload(const Sums& totals);
std::string end_payload(const Sums& totals);
void write_full_blocks();
void begin_generation(const Sums& totals, const StateList& states, std::uint8_t flags);
void end_generation(const Sums& totals);
// The body of the thread `magpie-trace`.
void* serve(void*);

// ---- recorder_flight.cc

// What a file of the flight recorder begins with.
std::string make_prologue();
// In the handler of a signal, while other threads may still write: no lock, no memory.
void write_last_words();

}  // namespace magpie::trace::recording
