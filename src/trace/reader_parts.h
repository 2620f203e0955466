// reader_parts.h: the insides of a Reader.
//
// reader_index.cc finds the blocks of a file and the generations they belong to, reader_opening.cc
// makes the events with which reading begins, reader.cc merges the streams.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "trace/format.h"
#include "trace/goroutine_map.h"
#include "trace/meta.h"
#include "trace/reader.h"
#include "trace/states.h"
#include "trace/storage.h"
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
  const Decoding* decoding = nullptr;  // of the Index, which outlives it
};

// What the events of a generation say of a goroutine before its first one.
struct Before {
  std::uint64_t ticks = 0;
  bool existed = false;
  GoState state = GoState::waiting;
  std::int32_t proc = kOutside;
  Event recorded;  // its `state` event in the file, if there is one
};

// What the blocks of a trace say of the whole. Fixed once it is made: readers share it.
struct Index {
  explicit Index(std::shared_ptr<const Storage> its) : storage(std::move(its)) {}

  std::shared_ptr<const Storage> storage;
  std::map<std::uint32_t, Generation> generations;
  std::vector<GenerationRef> refs;  // of each, in the same order
  std::deque<Decoding> decodings;   // one for each begin block: generations share them
  std::vector<Module> modules;
  Info info;
  std::uint64_t lost = 0;

  // clocks
  Instant origin;  // of the first generation
  Instant latest;
  bool has_origin = false;
  bool is_ended = false;  // by the last generation's own words
  double ns_per_tick = 1;

  // False: it is no trace.
  [[nodiscard]] bool make(std::string& error);
  std::int64_t ns_of(std::uint64_t ticks) const {
    if (ticks <= origin.ticks) return 0;
    double ns = static_cast<double>(ticks - origin.ticks) * ns_per_tick;
    return ns < 9e18 ? static_cast<std::int64_t>(ns) : INT64_MAX / 2;
  }

 private:
  bool has_our_header(std::string& error) const;
  void find_blocks();
  void note(const BlockRef& block);
  std::string payload_of(const BlockRef& block) const;
  void read_meta();
  void read_meta_of(Generation& generation);
  void read_modules(const BlockRef& block);
  void leave_out_impossible_streams();
  void set_clock();
  void list_generations();

  std::set<std::pair<std::uint64_t, std::string>> known_modules_;  // by start and path
  std::uint32_t most_procs_ = 0;                                   // that a begin block tells of
};

}  // namespace reading

struct Reader::Parts {
  using Generation = reading::Generation;
  using Before = reading::Before;

  explicit Parts(std::shared_ptr<const reading::Index> its)
      : index(std::move(its)), place(index->generations.begin()) {}

  const std::shared_ptr<const reading::Index> index;
  Strings strings;

  // reading
  std::map<std::uint32_t, Generation>::const_iterator place;  // behind the run() that is being read
  std::vector<Event> opening;
  std::size_t opening_next = 0;
  std::vector<Stream> streams;
  std::vector<std::size_t> heap;  // of streams, the earliest head on top
  std::vector<std::size_t> held;  // streams whose heads wait for an explanation
  States states;
  std::int64_t last_ns = 0;
  std::uint64_t repairs = 0;

  void begin_run();
  void make_opening(const Generation& generation);
  void enter_opening();
  Stream stream_of(std::int32_t proc, std::vector<BlockRef> blocks) {
    return Stream(proc, std::move(blocks), *index->storage, strings);
  }
  GoroutineMap<Before> look_ahead(const Generation& generation,
                                  std::map<std::int32_t, Event>& procs);
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
