// reader_parts.h: the insides of a Reader.
//
// reader_index.cc finds the blocks of a file and the generations they belong to, reader_opening.cc
// makes the events with which reading begins, reader.cc merges the streams.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "trace/format.h"
#include "trace/goroutine_map.h"
#include "trace/meta.h"
#include "trace/reader.h"
#include "trace/states.h"
#include "trace/stream.h"

namespace magpie::trace {
namespace reading {

struct Generation {
  std::vector<BlockRef> begins, states, ends;
  std::map<std::uint16_t, std::vector<BlockRef>> streams;
  std::uint64_t event_bytes = 0;
  std::uint64_t first_ticks = ~std::uint64_t{0};  // of its events
  std::uint64_t begin_ticks = 0, end_ticks = 0;   // as its begin and end blocks say
  bool is_new_run = false;
  Decoding decoding;
};

// What the events of a generation say of a goroutine before its first one.
struct Before {
  std::uint64_t ticks = 0;
  bool existed = false;
  GoState state = GoState::waiting;
  std::int32_t proc = kOutside;
  Event recorded;  // its `state` event in the file, if there is one
};

struct Mapping {
  const std::uint8_t* data = nullptr;
  std::size_t bytes = 0;
  bool mapped = false;
  std::string held;

  Mapping() = default;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (mapped) munmap(const_cast<std::uint8_t*>(data), bytes);
  }
};

}  // namespace reading

struct Reader::Parts {
  using Generation = reading::Generation;
  using Before = reading::Before;

  reading::Mapping file;
  std::map<std::uint32_t, Generation> generations;
  std::vector<GenerationRef> refs;
  std::vector<Module> modules;
  Info info;
  std::uint64_t lost = 0;
  Strings strings;

  // clocks
  Instant origin;  // of the first generation
  Instant latest;
  bool has_origin = false;
  bool is_ended = false;  // by the last generation's own words
  double ns_per_tick = 1;

  // reading
  std::map<std::uint32_t, Generation>::iterator place;  // behind the run() that is being read
  std::vector<Event> opening;
  std::size_t opening_next = 0;
  std::vector<Stream> streams;
  std::vector<std::size_t> heap;  // of streams, the earliest head on top
  std::vector<std::size_t> held;  // streams whose heads wait for an explanation
  States states;
  std::int64_t last_ns = 0;
  std::uint64_t repairs = 0;

  bool index(std::string& error);
  void index_block(const BlockHeader& header, const std::uint8_t* payload, std::size_t bytes);
  void read_meta();
  void read_meta_of(Generation& generation);
  void set_clock();
  void list_generations();
  void read_modules(const BlockRef& block);
  std::int64_t ns_of(std::uint64_t ticks) const {
    if (ticks <= origin.ticks) return 0;
    double ns = static_cast<double>(ticks - origin.ticks) * ns_per_tick;
    return ns < 9e18 ? static_cast<std::int64_t>(ns) : INT64_MAX / 2;
  }

  void begin_run();
  void make_opening(Generation& generation);
  void enter_opening();
  GoroutineMap<Before> look_ahead(Generation& generation, std::map<std::int32_t, Event>& procs);
  bool is_later(std::size_t a, std::size_t b) const {
    return streams[a].ticks() != streams[b].ticks() ? streams[a].ticks() > streams[b].ticks()
                                                    : a > b;
  }
  void push(std::size_t stream) {
    heap.push_back(stream);
    std::push_heap(heap.begin(), heap.end(),
                   [this](std::size_t a, std::size_t b) { return is_later(a, b); });
  }
  void pop() {
    std::pop_heap(heap.begin(), heap.end(),
                  [this](std::size_t a, std::size_t b) { return is_later(a, b); });
    heap.pop_back();
  }
  void deliver(std::size_t stream, Event& event);
  bool next_of_run(Event& event);
};

// The P whose events are in a stream, or kOutside.
inline std::int32_t proc_of(std::uint16_t stream) {
  return stream == kOutsideStream ? kOutside : stream;
}

}  // namespace magpie::trace
