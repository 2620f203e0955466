// reader_index.cc: finds the blocks of a trace, and what they say of the whole.
#include <cstring>
#include <utility>

#include "trace/reader_parts.h"

namespace magpie::trace {
namespace {

// Adds to `sums` by how much each total grew.
void add_growth(Totals& sums, const Totals& begin, const Totals& end) {
  for (const auto& [key, value] : end) {
    const std::string& name = key;
    auto has_name = [&name](const auto& total) { return total.first == name; };
    auto before = std::find_if(begin.begin(), begin.end(), has_name);
    auto sum = std::find_if(sums.begin(), sums.end(), has_name);
    if (sum == sums.end()) sum = sums.insert(sums.end(), {name, 0});
    sum->second += value - (before == begin.end() ? 0 : before->second);
  }
}

// The kinds of events that this version of the reader knows.
std::vector<std::string> known_kinds() {
  std::vector<std::string> kinds;
  for (const KindInfo& kind : kKindInfo) kinds.emplace_back(kind.args);
  return kinds;
}

}  // namespace

bool Reader::Parts::index(std::string& error) {
  if (file.bytes < kFileHeaderBytes || std::memcmp(file.data, kFileMagic, sizeof kFileMagic) != 0) {
    error = "not a trace of magpie: it does not begin with \"MAGPIE TRACE\"";
    return false;
  }
  std::uint16_t version;
  std::memcpy(&version, file.data + sizeof kFileMagic, sizeof version);
  if (version != kVersion) {
    error = "version " + std::to_string(version) + " of the trace format, but this reader knows " +
            std::to_string(kVersion);
    return false;
  }
  info.is_whole = true;
  std::size_t at = kFileHeaderBytes;
  while (file.bytes - at >= sizeof(BlockHeader)) {
    BlockHeader header;
    std::memcpy(&header, file.data + at, sizeof header);
    if (header.magic != kBlockMagic) {
      // Something is broken: goes on at the next thing that looks like a block.
      info.is_whole = false;
      const void* found =
          memmem(file.data + at + 1, file.bytes - at - 1, &kBlockMagic, sizeof kBlockMagic);
      if (found == nullptr) break;
      at = static_cast<std::size_t>(static_cast<const std::uint8_t*>(found) - file.data);
      continue;
    }
    std::size_t left = file.bytes - at - sizeof header;
    std::size_t bytes = std::min<std::size_t>(header.payload_bytes, left);
    if (bytes != header.payload_bytes) info.is_whole = false;  // the end is cut off
    index_block(header, file.data + at + sizeof header, bytes);
    at += sizeof header + bytes;
  }
  if (at != file.bytes) info.is_whole = false;
  read_meta();
  return true;
}

void Reader::Parts::index_block(const BlockHeader& header, const std::uint8_t* payload,
                                std::size_t bytes) {
  BlockRef block{header, payload, bytes};
  switch (static_cast<BlockType>(header.type)) {
    case BlockType::begin:
      return generations[header.generation].begins.push_back(block);
    case BlockType::events: {
      Generation& its = generations[header.generation];
      its.event_bytes += bytes;
      its.first_ticks = std::min(its.first_ticks, header.first_ticks);
      return its.streams[header.stream].push_back(block);
    }
    case BlockType::states:
      return generations[header.generation].states.push_back(block);
    case BlockType::modules:
      return read_modules(block);
    case BlockType::end:
      return generations[header.generation].ends.push_back(block);
  }
}

void Reader::Parts::read_modules(const BlockRef& block) {
  Input input(block.payload, block.bytes);
  while (!input.is_at_end()) {
    Module module;
    module.start = input.number();
    module.end = input.number();
    module.offset = input.number();
    module.path = input.string();
    module.build_id = input.string();
    if (input.is_broken()) return;
    bool known = std::any_of(modules.begin(), modules.end(), [&](const Module& other) {
      return other.start == module.start && other.path == module.path;
    });
    if (!known) modules.push_back(std::move(module));
  }
}

// Begin and end blocks: the clocks, and what info() tells. A generation without a begin block is
// decoded like the one before.
void Reader::Parts::read_meta() {
  std::vector<std::string> kinds = known_kinds();
  for (auto& [number, generation] : generations) {
    generation.decoding.kinds = kinds;
    read_meta_of(generation);
    kinds = generation.decoding.kinds;
  }
  set_clock();
  list_generations();
  place = generations.begin();
}

void Reader::Parts::read_meta_of(Generation& generation) {
  generation.decoding.strings = &strings;
  generation.begin_ticks = generation.first_ticks;
  Totals begin_totals;
  auto note_instant = [this](const Instant& instant) {
    if (instant.ticks > latest.ticks) latest = instant;
  };
  for (const BlockRef& block : generation.begins) {
    BeginPayload begin;
    if (!decode(Input(block.payload, block.bytes), begin)) continue;
    generation.decoding.kinds = begin.kinds;
    generation.decoding.anchor = begin.anchor;
    generation.is_new_run |= (block.header.flags & kNewRun) != 0;
    // The block of a snapshot is made after its events.
    generation.begin_ticks = std::min(begin.now.ticks, generation.first_ticks);
    begin_totals = begin.totals;
    if (!has_origin) {
      has_origin = true;
      origin = begin.origin;
      info.program = begin.program;
      info.pid = begin.pid;
      info.wall_ns = begin.wall_ns;
      info.procs = begin.procs;
      info.ticks_per_second = static_cast<double>(begin.ticks_per_second);
    }
    note_instant(begin.now);
  }
  for (const BlockRef& block : generation.ends) {
    EndPayload end;
    if (!decode(Input(block.payload, block.bytes), end)) continue;
    note_instant(end.now);
    generation.end_ticks = end.now.ticks;
    lost = std::max(lost, end.lost);
    is_ended = end.is_last;
    add_growth(info.totals, begin_totals, end.totals);
  }
  for (auto& [stream, blocks] : generation.streams) {
    for (BlockRef& block : blocks) block.decoding = &generation.decoding;
  }
  for (BlockRef& block : generation.states) block.decoding = &generation.decoding;
}

void Reader::Parts::set_clock() {
  // A thousandth of a second tells the frequency to a millionth or so: better than the estimate.
  std::uint64_t ticks = latest.ticks - origin.ticks;
  std::int64_t ns = latest.ns - origin.ns;
  if (latest.ticks > origin.ticks && ns > 1'000'000) {
    info.ticks_per_second = static_cast<double>(ticks) * 1e9 / static_cast<double>(ns);
  }
  if (info.ticks_per_second >= 1) ns_per_tick = 1e9 / info.ticks_per_second;
  info.length_ns = ns_of(latest.ticks);
}

void Reader::Parts::list_generations() {
  if (!is_ended) info.is_whole = false;
  for (auto& [number, generation] : generations) {
    bool is_empty = generation.begin_ticks == ~std::uint64_t{0};
    std::int64_t begin_ns = is_empty ? 0 : ns_of(generation.begin_ticks);
    std::int64_t end_ns = std::max(begin_ns, ns_of(generation.end_ticks));
    refs.push_back({number, begin_ns, end_ns, generation.event_bytes});
  }
  for (std::size_t i = 0; i + 1 < refs.size(); ++i) {
    if (refs[i].end_ns <= refs[i].begin_ns) refs[i].end_ns = refs[i + 1].begin_ns;
  }
}

}  // namespace magpie::trace
