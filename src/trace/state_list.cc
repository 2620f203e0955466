// state_list.cc: the states that a generation begins with, as events.
#include <cstdint>
#include <utility>

#include "trace/buffer.h"
#include "trace/recorder.h"

namespace magpie::trace {

std::uint8_t* StateList::room() {
  std::size_t wanted = used_ + kLongestEvent;
  if (wanted > bytes_.capacity() && !bytes_.grow_to(2 * wanted + 65536, used_)) return nullptr;
  if (used_ == 0) done(put_number(bytes_.data(), 0));  // no goroutine runs on this stream
  return bytes_.data() + used_;
}

void StateList::add_goroutine(std::uint64_t g, std::uint8_t its_state, std::uint8_t reason,
                              std::uint64_t object_or_proc, std::uint64_t body) {
  std::uint8_t* at = room();
  if (at == nullptr) return;
  *at = static_cast<std::uint8_t>(Kind::state);
  at = put_number(at + 1, 0);
  at = put_number(at, g);
  at = put_number(at, its_state);
  at = put_number(at, reason);
  at = put_number(at, zigzag(object_or_proc - std::exchange(last_object_, object_or_proc)));
  done(put_number(at, coded_pc(body)));
}

void StateList::add_proc(std::uint64_t thread, std::uint64_t index) {
  std::uint8_t* at = room();
  if (at == nullptr) return;
  *at = static_cast<std::uint8_t>(Kind::proc_begin);
  at = put_number(at + 1, 0);
  at = put_number(at, thread);
  done(put_number(at, index));
}

}  // namespace magpie::trace
