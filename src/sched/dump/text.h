// text.h: a dump as people read it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sched/dump/snapshot.h"

namespace magpie::sched {

// Collects text and passes it on in large pieces. Allocates nothing.
class Text {
 public:
  using Write = void (*)(void* to, const char* text, std::size_t length);
  Text(Write write, void* to) : write_(write), to_(to) {}
  ~Text() { flush(); }
  Text(const Text&) = delete;
  Text& operator=(const Text&) = delete;

  [[gnu::format(printf, 2, 3)]] void add(const char* format, ...);
  void add_text(const char* text);  // of any length
  void flush();

 private:
  static constexpr std::size_t kLongest = 512;  // of one add()

  const Write write_;
  void* const to_;
  char text_[4096];
  std::size_t length_ = 0;
};

// Writes to the descriptor, in an int that `to` points to.
void write_to_descriptor(void* to, const char* text, std::size_t length);

// How code is named. by_symbols: function, file and line; allocates and locks; without memory, file
// and offset. by_modules: file and offset, safe in signal handlers.
enum class Naming { by_symbols, by_modules };

void print_frames(Text& out, const Frames& frames, Naming naming);
void print_cycles(Text& out, const WaitGraph& waits);
void print_group(Text& out, const Group& group, const WaitGraph& waits, Naming naming);
void print(Text& out, const Snapshot& snapshot, Naming naming);

// What a group waits for, in words: "Mutex 0x7f0012345678". Empty: nothing is known.
void describe_object(char* out, std::size_t size, const Group& group);
const char* text(GState state);

}  // namespace magpie::sched
