// recorder_flight.cc: what the flight recorder holds, as a file: a snapshot, or the last words of a
// crash.
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "base/page_array.h"
#include "trace/block_file.h"
#include "trace/modules.h"
#include "trace/recording.h"

namespace magpie::trace {

namespace recording {
namespace {

struct Copy {
  BlockHeader header;
  std::size_t offset;
};

// Copies the blocks, oldest first, while their writers go on. A block that is reused meanwhile is
// left out: it was the oldest. False: there is no memory.
[[nodiscard]] bool copy_blocks(base::PageArray<std::uint8_t>& memory, std::vector<Copy>& copies) {
  std::vector<std::pair<std::uint64_t, Block*>> order;
  for (std::size_t i = 0; i < the_recording->block_count; ++i) {
    Block* block = block_at(i);
    if (std::uint64_t sequence = the_recording->blocks.sequence_of(block))
      order.emplace_back(sequence, block);
  }
  std::sort(order.begin(), order.end());
  if (!memory.grow_to(std::max<std::size_t>(order.size(), 1) * kBlockBytes)) return false;
  std::size_t offset = 0;
  for (auto [sequence, block] : order) {
    if (!the_recording->blocks.pin(block, sequence)) continue;
    std::size_t bytes = block->used();
    std::memcpy(memory.data() + offset, data_of(block), bytes);
    copies.push_back({header_of(*block, bytes), offset});
    the_recording->blocks.unpin(block);
    offset += bytes;
  }
  return true;
}

// False: there is no flight recorder.
bool list_states_of_flight(StateList& states) {
  void (*list)(StateList&) = nullptr;
  {
    Control hold;
    if (the_recording == nullptr || !the_recording->plan.flight) return false;
    list = the_recording->host.states;
  }
  list(states);
  return true;
}

}  // namespace

std::string make_prologue() {
  char header[kFileHeaderBytes];
  write_file_header(header);
  std::string out(header, sizeof header);
  std::string begin = begin_payload(Sums{}), modules = encode_modules();
  std::uint32_t generation = the_recording->blocks.generation();
  append_block(out, header_of(BlockType::begin, generation, begin.size()), begin);
  append_block(out, header_of(BlockType::modules, generation, modules.size()), modules);
  return out;
}

void write_last_words() {
  detail::magpie_trace_is_on.store(false, base::relaxed);
  int fd = open_to_write(the_recording->plan.path.c_str());
  if (fd < 0) return;
  bool good = write_all(fd, the_recording->prologue.data(), the_recording->prologue.size());
  for (std::size_t i = 0; i < the_recording->block_count && good; ++i) {
    Block* block = block_at(i);
    if (block->is_free) continue;
    std::size_t bytes = block->used();
    good = write_block(fd, header_of(*block, bytes), data_of(block));
  }
  close(fd);
}

}  // namespace recording

using namespace recording;

std::string Recorder::snapshot(const std::string& path) {
  // Before the lock: a goroutine that enters the runtime may never come back, if run() ends.
  StateList states;
  if (!list_states_of_flight(states)) return "no flight recorder is on";
  Control hold;
  if (the_recording == nullptr) return "no flight recorder is on";
  std::string prologue = make_prologue();
  base::PageArray<std::uint8_t> memory;
  std::vector<Copy> copies;
  if (!copy_blocks(memory, copies)) return "no memory for the snapshot";
  std::string end = end_payload(Sums{});

  int fd = open_to_write(path.c_str());
  if (fd < 0) return with_reason(path);
  std::uint32_t generation = the_recording->blocks.generation();
  bool good = write_all(fd, prologue.data(), prologue.size());
  for (const Copy& copy : copies)
    good = good && write_block(fd, copy.header, memory.data() + copy.offset);
  BlockHeader header = header_of(BlockType::states, generation, states.view().size());
  good = good && write_block(fd, header, states.view().data());
  good = good && write_block(fd, header_of(BlockType::end, generation, end.size()), end.data());
  std::string error = good ? std::string() : with_reason(path);
  close(fd);
  return error;
}

}  // namespace magpie::trace
