#include "trace/reader.h"

#include <algorithm>
#include <utility>

#include "trace/reader_parts.h"

namespace magpie::trace {
namespace {

// An event waits for its explanation while other streams are at most this far ahead.
constexpr std::int64_t kSlackNs = 100'000;

}  // namespace

// From this generation to the end of its run().
void Reader::Parts::begin_run() {
  streams.clear();
  heap.clear();
  held.clear();
  opening.clear();
  opening_next = 0;
  states.clear();
  const auto ref = std::ranges::lower_bound(index->refs, place->first, {}, &GenerationRef::number);
  last_ns = std::max(last_ns, ref->begin_ns);  // there is one for each generation
  if (!place->second.is_new_run) make_opening(place->second);
  std::map<std::uint16_t, std::vector<BlockRef>> blocks;
  do {
    for (const auto& [number, its] : place->second.streams) {
      std::vector<BlockRef>& all = blocks[number];
      all.insert(all.end(), its.begin(), its.end());
    }
    ++place;
  } while (place != index->generations.end() && !place->second.is_new_run);
  streams.reserve(blocks.size());
  for (auto& [number, its] : blocks) {
    streams.push_back(stream_of(proc_of(number), std::move(its)));
    if (streams.back().advance()) push(streams.size() - 1);
  }
}

// ---- merging

void Reader::Parts::deliver(std::size_t stream, Event& event) {
  Stream& from = streams[stream];
  event = from.head();
  last_ns = std::max(last_ns, index->ns_of(from.ticks()));
  event.time_ns = last_ns;
  states.follow(event);
  if (from.advance()) push(stream);
}

bool Reader::Parts::next_of_run(Event& event) {
  if (opening_next != opening.size()) {
    event = opening[opening_next++];
    return true;
  }
  for (;;) {
    for (std::size_t i = 0; i < held.size(); ++i) {
      std::size_t stream = held[i];
      if (!states.can_follow(streams[stream].head())) continue;
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(i));
      deliver(stream, event);
      return true;
    }
    if (held.empty() && heap.empty()) return false;
    bool give_up = false;
    if (!held.empty()) {
      std::int64_t since = index->ns_of(streams[held[0]].ticks());
      give_up = heap.empty() || index->ns_of(streams[heap[0]].ticks()) > since + kSlackNs;
    }
    if (give_up) {
      std::size_t stream = held[0];
      held.erase(held.begin());
      ++repairs;
      deliver(stream, event);
      return true;
    }
    std::size_t stream = heap[0];
    pop();
    if (states.can_follow(streams[stream].head())) {
      deliver(stream, event);
      return true;
    }
    held.push_back(stream);
  }
}

// ---- the door

Reader::Reader(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Reader::Reader(Reader&&) noexcept = default;
Reader& Reader::operator=(Reader&&) noexcept = default;
Reader::~Reader() = default;

std::optional<Reader> Reader::open(const std::string& path, std::string& error) {
  std::shared_ptr<const Storage> storage = Storage::open(path, error);
  if (storage == nullptr) return std::nullopt;
  auto index = std::make_shared<reading::Index>(std::move(storage));
  if (index->make(error)) return Reader(std::make_unique<Parts>(std::move(index)));
  error = path + ": " + error;
  return std::nullopt;
}

std::optional<Reader> Reader::from_bytes(std::string bytes, std::string& error) {
  auto index = std::make_shared<reading::Index>(std::make_shared<const Storage>(std::move(bytes)));
  if (!index->make(error)) return std::nullopt;
  return Reader(std::make_unique<Parts>(std::move(index)));
}

Reader Reader::twin() const { return Reader(std::make_unique<Parts>(parts_->index)); }

bool Reader::next(Event& event) {
  Parts& parts = *parts_;
  while (!parts.next_of_run(event)) {
    if (parts.place == parts.index->generations.end()) return false;
    parts.begin_run();
  }
  return true;
}

std::string_view Reader::string(std::uint64_t id) const { return parts_->strings[id]; }
const std::vector<Module>& Reader::modules() const { return parts_->index->modules; }
const Info& Reader::info() const { return parts_->index->info; }
bool Reader::is_whole() const {
  return info().is_whole && !parts_->index->storage->has_missed_bytes();
}
std::uint64_t Reader::lost() const { return parts_->index->lost; }
std::uint64_t Reader::repairs() const { return parts_->repairs; }
const std::vector<GenerationRef>& Reader::generations() const { return parts_->index->refs; }

void Reader::seek(const GenerationRef& generation) {
  Parts& parts = *parts_;
  parts.place = parts.index->generations.find(generation.number);
  parts.last_ns = 0;
  parts.streams.clear();
  parts.heap.clear();
  parts.held.clear();
  parts.opening.clear();
  parts.opening_next = 0;
}

}  // namespace magpie::trace
