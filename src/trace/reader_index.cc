// reader_index.cc: finds the blocks of a trace, and what they say of the whole.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "trace/reader_parts.h"

namespace magpie::trace::reading {
namespace {

constexpr std::size_t kPieceBytes = 4096;  // blocks are larger: most of them is not read
constexpr std::size_t kMostMetaBytes = std::size_t{16} << 20;
constexpr std::size_t kMostModules = 100'000;  // a process has fewer mappings
// A trace that begins with few Ps may get more. A damaged number of a stream is most often larger.
constexpr std::uint32_t kProcsToExpect = 1024;

Input input_of(const std::string& payload) {
  return {reinterpret_cast<const std::uint8_t*>(payload.data()), payload.size()};
}

// Where the next block may begin, at or behind `at`; `end`: nowhere.
std::uint64_t find_magic(Window& window, std::uint64_t at, std::uint64_t end) {
  for (;;) {
    const Window::Bytes bytes = window.at(at, sizeof kBlockMagic);
    if (bytes.size < sizeof kBlockMagic) return end;
    const void* found = memmem(bytes.data, bytes.size, &kBlockMagic, sizeof kBlockMagic);
    if (found != nullptr)
      return at + static_cast<std::uint64_t>(static_cast<const std::uint8_t*>(found) - bytes.data);
    at += bytes.size - sizeof kBlockMagic + 1;
  }
}

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

bool Index::has_our_header(std::string& error) const {
  char header[kFileHeaderBytes] = {};
  const bool is_short = storage->read(0, header, sizeof header) < sizeof header;
  if (is_short || std::memcmp(header, kFileMagic, sizeof kFileMagic) != 0) {
    error = "not a trace of magpie: it does not begin with \"MAGPIE TRACE\"";
    return false;
  }
  std::uint16_t version;
  std::memcpy(&version, header + sizeof kFileMagic, sizeof version);
  if (version == kVersion) return true;
  error = "version " + std::to_string(version) + " of the trace format, but this reader knows " +
          std::to_string(kVersion);
  return false;
}

bool Index::make(std::string& error) {
  if (!has_our_header(error)) return false;
  info.is_whole = true;
  find_blocks();
  read_meta();
  return true;
}

void Index::find_blocks() {
  const std::uint64_t end = storage->bytes();
  std::uint64_t at = kFileHeaderBytes;
  Window window(*storage, kPieceBytes);
  while (end - at >= sizeof(BlockHeader)) {
    const Window::Bytes bytes = window.at(at, sizeof(BlockHeader));
    if (bytes.size < sizeof(BlockHeader)) break;  // the file has become shorter
    BlockHeader header;
    std::memcpy(&header, bytes.data, sizeof header);
    if (header.magic != kBlockMagic) {
      // Something is broken: goes on at the next thing that looks like a block.
      info.is_whole = false;
      at = find_magic(window, at + 1, end);
      continue;
    }
    at += sizeof header;
    const std::uint64_t payload = std::min<std::uint64_t>(header.payload_bytes, end - at);
    if (payload != header.payload_bytes) info.is_whole = false;  // the end is cut off
    note({header, at, static_cast<std::size_t>(payload)});
    at += payload;
  }
  if (at != end) info.is_whole = false;
}

void Index::note(const BlockRef& block) {
  Generation& its = generations[block.header.generation];
  switch (static_cast<BlockType>(block.header.type)) {
    case BlockType::begin:
      return its.begins.push_back(block);
    case BlockType::events:
      its.event_bytes += block.bytes;
      its.first_ticks = std::min(its.first_ticks, block.header.first_ticks);
      return its.streams[block.header.stream].push_back(block);
    case BlockType::states:
      return its.states.push_back(block);
    case BlockType::modules:
      return read_modules(block);
    case BlockType::end:
      return its.ends.push_back(block);
  }
}

// Of a block that tells of the whole.
std::string Index::payload_of(const BlockRef& block) const {
  std::string payload(std::min(block.bytes, kMostMetaBytes), '\0');
  payload.resize(storage->read(block.place, payload.data(), payload.size()));
  return payload;
}

void Index::read_modules(const BlockRef& block) {
  const std::string payload = payload_of(block);
  Input input = input_of(payload);
  while (!input.is_at_end()) {
    Module module;
    module.start = input.number();
    module.end = input.number();
    module.offset = input.number();
    module.path = input.string();
    module.build_id = input.string();
    if (input.is_broken()) return;
    if (modules.size() == kMostModules) return;
    if (known_modules_.emplace(module.start, module.path).second)
      modules.push_back(std::move(module));
  }
}

// Begin and end blocks: the clocks, and what info() tells. A generation without a begin block is
// decoded like the one before.
void Index::read_meta() {
  decodings.push_back({known_kinds()});
  for (auto& [number, generation] : generations) {
    generation.decoding = &decodings.back();
    read_meta_of(generation);
  }
  leave_out_impossible_streams();
  set_clock();
  list_generations();
}

void Index::read_meta_of(Generation& generation) {
  generation.begin_ticks = generation.first_ticks;
  Totals begin_totals;
  auto note_instant = [this](const Instant& instant) {
    if (instant.ticks > latest.ticks) latest = instant;
  };
  for (const BlockRef& block : generation.begins) {
    BeginPayload begin;
    const std::string payload = payload_of(block);
    if (!decode(input_of(payload), begin)) continue;
    if (begin.kinds != decodings.back().kinds || begin.anchor != decodings.back().anchor)
      decodings.push_back({begin.kinds, begin.anchor});
    generation.decoding = &decodings.back();
    most_procs_ = std::max(most_procs_, begin.procs);
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
      info.procs = std::min<std::uint32_t>(begin.procs, kOutsideStream);
      info.ticks_per_second = static_cast<double>(begin.ticks_per_second);
    }
    note_instant(begin.now);
  }
  for (const BlockRef& block : generation.ends) {
    EndPayload end;
    const std::string payload = payload_of(block);
    if (!decode(input_of(payload), end)) continue;
    note_instant(end.now);
    generation.end_ticks = end.now.ticks;
    lost = std::max(lost, end.lost);
    is_ended = end.is_last;
    add_growth(info.totals, begin_totals, end.totals);
  }
  for (auto& [stream, blocks] : generation.streams) {
    for (BlockRef& block : blocks) block.decoding = generation.decoding;
  }
  for (BlockRef& block : generation.states) block.decoding = generation.decoding;
}

// Everybody behind us has tables by the numbers of Ps.
void Index::leave_out_impossible_streams() {
  const std::uint64_t end = std::max<std::uint64_t>(kProcsToExpect, 2 * std::uint64_t{most_procs_});
  for (auto& [number, generation] : generations) {
    auto& streams = generation.streams;
    for (auto its = streams.begin(); its != streams.end();) {
      const bool is_possible = its->first < end || its->first == kOutsideStream;
      if (!is_possible) info.is_whole = false;
      its = is_possible ? std::next(its) : streams.erase(its);
    }
  }
}

void Index::set_clock() {
  // A thousandth of a second tells the frequency to a millionth or so: better than the estimate.
  std::uint64_t ticks = latest.ticks - origin.ticks;
  // In a damaged trace the two may be further apart than the type can say: then it wraps.
  const auto ns = static_cast<std::int64_t>(static_cast<std::uint64_t>(latest.ns) -
                                            static_cast<std::uint64_t>(origin.ns));
  if (latest.ticks > origin.ticks && ns > 1'000'000) {
    info.ticks_per_second = static_cast<double>(ticks) * 1e9 / static_cast<double>(ns);
  }
  if (info.ticks_per_second >= 1) ns_per_tick = 1e9 / info.ticks_per_second;
  info.length_ns = ns_of(latest.ticks);
}

void Index::list_generations() {
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

}  // namespace magpie::trace::reading
