// recorder_file.cc: full blocks go to the file, generation after generation.
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/guard.h"
#include "trace/block_file.h"
#include "trace/modules.h"
#include "trace/recording.h"
#include "trace/stream.h"

namespace magpie::trace::recording {
namespace {

Totals named(const Sums& sums) {
  Totals totals;
  for (std::size_t i = 0; i < the_recording->host.total_names.size(); ++i)
    totals.emplace_back(the_recording->host.total_names[i], sums[i]);
  return totals;
}

Sums totals_now() {
  Sums sums{};
  the_recording->host.totals(sums);
  return sums;
}

// What a block that cannot be written would have told.
std::uint64_t count_events(const std::uint8_t* payload, std::size_t bytes) {
  Decoding decoding;
  Strings strings;
  for (const KindInfo& kind : kKindInfo) decoding.kinds.emplace_back(kind.args);
  const Storage storage(std::string(reinterpret_cast<const char*>(payload), bytes));
  Stream stream(0, {{BlockHeader{}, 0, bytes, &decoding}}, storage, strings);
  std::uint64_t count = 0;
  while (stream.advance()) ++count;
  return count;
}

// False: the file could not be written, and is as it was before.
bool add_to_file(const BlockHeader& header, const void* payload) {
  if (write_block(the_recording->fd, header, payload)) {
    the_recording->good_bytes += static_cast<off_t>(sizeof header + header.payload_bytes);
    return true;
  }
  std::string failure = with_reason(the_recording->plan.path);
  // If half a block stays behind, the reader skips it.
  if (ftruncate(the_recording->fd, the_recording->good_bytes) == 0)
    (void)lseek(the_recording->fd, the_recording->good_bytes, SEEK_SET);
  if (the_recording->failure.empty())
    base::warn("trace: %s; events are lost for as long as that lasts", failure.c_str());
  the_recording->failure = std::move(failure);
  return false;
}

void add_to_file(BlockType type, std::string_view payload, std::uint8_t flags = 0) {
  BlockHeader header = header_of(type, the_recording->blocks.generation(), payload.size());
  header.flags = flags;
  (void)add_to_file(header, payload.data());
}

}  // namespace

std::string begin_payload(const Sums& totals) {
  BeginPayload begin;
  begin.origin = the_recording->origin;
  begin.now = instant_now();
  begin.ticks_per_second = the_recording->ticks_per_second;
  begin.wall_ns = the_recording->wall_ns;
  begin.pid = getpid();
  {
    base::Guard hold(switching);
    begin.procs = the_recording->procs;
  }
  begin.anchor = reinterpret_cast<std::uint64_t>(&anchor);
  begin.program = program_path();
  begin.totals = named(totals);
  return encode(begin);
}

std::string end_payload(const Sums& totals) {
  EndPayload end;
  end.now = instant_now();
  end.lost = the_recording->lost_in_file + Outside::lost();
  for (std::size_t i = 0; i < the_recording->blocks.streams(); ++i)
    end.lost += detail::buffers[i].lost();
  end.totals = named(totals);
  return encode(end);
}

void write_full_blocks() {
  while (Block* block = the_recording->blocks.take_full()) {
    std::size_t bytes = block->used();
    the_recording->generation_bytes += bytes;
    if (!add_to_file(header_of(*block, bytes), data_of(block)))
      the_recording->lost_in_file += count_events(data_of(block), bytes);
    the_recording->blocks.give(block);
  }
}

void begin_generation(const Sums& totals, const StateList& states, std::uint8_t flags) {
  add_to_file(BlockType::begin, begin_payload(totals), flags);
  add_to_file(BlockType::modules, encode_modules());
  add_to_file(BlockType::states, states.view());
  the_recording->generation_bytes = 0;
  the_recording->next_generation_at = std::max(kGenerationBytes, 2 * states.view().size());
}

void end_generation(const Sums& totals) {
  add_to_file(BlockType::end, end_payload(totals));
  the_recording->blocks.next_generation();
}

namespace {

// Events that are written from now on belong to the next generation. A P that sleeps keeps its
// block: the block tells its generation, wherever it comes in the file.
void cut() {
  Sums totals = totals_now();
  end_generation(totals);
  for (std::size_t i = 0; i < the_recording->blocks.streams(); ++i)
    detail::buffers[i].ask_for_new_block();
  Outside::ask_for_new_block();
  StateList states;
  the_recording->host.states(states);
  const std::uint32_t procs = the_recording->host.procs();
  {
    base::Guard hold(switching);
    the_recording->procs = procs;
  }
  begin_generation(totals, states, 0);
}

bool is_running() {
  base::Guard hold(switching);
  return the_recording->is_running;
}

}  // namespace

void* serve(void*) {
  pthread_setname_np(pthread_self(), "magpie-trace");
  for (;;) {
    wake_up.wait();
    if (the_recording->stop.load(base::relaxed)) return nullptr;
    if (signalled.exchange(false, base::relaxed) && the_recording->plan.signal != 0) {
      std::string error = Recorder::snapshot(the_recording->plan.path);
      if (!error.empty()) base::warn("trace: %s", error.c_str());
    }
    if (the_recording->plan.flight) continue;
    Control hold;
    write_full_blocks();
    if (the_recording->generation_bytes >= the_recording->next_generation_at && is_running()) cut();
  }
}

}  // namespace magpie::trace::recording
