#include "trace/reader.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <utility>

#include "trace/format.h"
#include "trace/meta.h"
#include "trace/states.h"
#include "trace/stream.h"

namespace magpie::trace {
namespace {

// An event waits for its explanation while other streams are at most this far ahead.
constexpr std::int64_t kSlackNs = 100'000;

}  // namespace

namespace reading {

struct Generation {
  std::vector<BlockRef> begins, states, ends;
  std::map<std::uint16_t, std::vector<BlockRef>> streams;
  std::uint64_t event_bytes = 0;
  std::uint64_t first_ticks = ~std::uint64_t{0};  // of its events
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
  Instant origin;
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
  void read_modules(const BlockRef& block);
  std::int64_t ns_of(std::uint64_t ticks) const {
    if (ticks <= origin.ticks) return 0;
    double ns = static_cast<double>(ticks - origin.ticks) * ns_per_tick;
    return ns < 9e18 ? static_cast<std::int64_t>(ns) : INT64_MAX / 2;
  }

  void begin_run();
  void make_opening(Generation& generation);
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

}  // namespace

// ---- the index

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

// Begin and end blocks: the clocks, and what info() tells.
void Reader::Parts::read_meta() {
  bool has_first = false;
  Instant earliest, latest;
  bool ended = false;
  std::map<std::uint32_t, std::pair<std::uint64_t, std::uint64_t>> spans;
  auto note_instant = [&](const Instant& instant) {
    if (instant.ticks > latest.ticks) latest = instant;
  };
  std::vector<std::string> kinds;  // of this reader's version: for a generation without a begin
  for (const KindInfo& kind : kKindInfo) kinds.emplace_back(kind.args);
  for (auto& [number, generation] : generations) {
    generation.decoding.kinds = kinds;
    generation.decoding.strings = &strings;
    std::uint64_t begin_ticks = generation.first_ticks, end_ticks = 0;
    Totals begin_totals;
    for (const BlockRef& block : generation.begins) {
      BeginPayload begin;
      if (!decode(Input(block.payload, block.bytes), begin)) continue;
      kinds = begin.kinds;
      generation.decoding.kinds = begin.kinds;
      generation.decoding.anchor = begin.anchor;
      generation.is_new_run |= (block.header.flags & kNewRun) != 0;
      // The block of a snapshot is made after its events.
      begin_ticks = std::min(begin.now.ticks, generation.first_ticks);
      begin_totals = begin.totals;
      if (!has_first) {
        has_first = true;
        origin = earliest = begin.origin;
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
      end_ticks = end.now.ticks;
      lost = std::max(lost, end.lost);
      ended = end.is_last;
      add_growth(info.totals, begin_totals, end.totals);
    }
    for (auto& [stream, blocks] : generation.streams) {
      for (BlockRef& block : blocks) block.decoding = &generation.decoding;
    }
    for (BlockRef& block : generation.states) block.decoding = &generation.decoding;
    spans[number] = {begin_ticks, end_ticks};
  }
  if (!ended) info.is_whole = false;
  // A thousandth of a second tells the frequency to a millionth or so: better than the estimate.
  std::uint64_t ticks = latest.ticks - earliest.ticks;
  std::int64_t ns = latest.ns - earliest.ns;
  if (latest.ticks > earliest.ticks && ns > 1'000'000) {
    info.ticks_per_second = static_cast<double>(ticks) * 1e9 / static_cast<double>(ns);
  }
  if (info.ticks_per_second >= 1) ns_per_tick = 1e9 / info.ticks_per_second;
  info.length_ns = ns_of(latest.ticks);
  for (auto& [number, generation] : generations) {
    auto [begin_ticks, end_ticks] = spans[number];
    std::int64_t begin_ns = begin_ticks == ~std::uint64_t{0} ? 0 : ns_of(begin_ticks);
    refs.push_back(
        {number, begin_ns, std::max(begin_ns, ns_of(end_ticks)), generation.event_bytes});
  }
  for (std::size_t i = 0; i + 1 < refs.size(); ++i) {
    if (refs[i].end_ns <= refs[i].begin_ns) refs[i].end_ns = refs[i + 1].begin_ns;
  }
  place = generations.begin();
}

// ---- where reading begins

namespace {

std::int32_t proc_of(std::uint16_t stream) { return stream == kOutsideStream ? kOutside : stream; }

// What an event says of the state in which its goroutines were before it.
struct Implied {
  std::uint64_t goroutine = 0;
  bool existed = true;
  GoState state = GoState::runnable;
  std::int32_t proc = kOutside;
};

// `running`: the goroutine on the event's P. Returns how many goroutines it says something of.
std::size_t implied_by(const Event& event, std::uint64_t running, Implied (&out)[2]) {
  std::uint64_t g = event.args[0];
  switch (event.kind) {
    case Kind::create:
      out[0] = {g, false};
      return 1;
    case Kind::run:
    case Kind::let_out:
      out[0] = {g};
      return 1;
    case Kind::ready:
      out[0] = {g, true, GoState::waiting};
      return 1;
    case Kind::back:
    case Kind::stop:
      out[0] = {g, true, GoState::running};
      return 1;
    case Kind::taken:
      out[0] = {event.args[1], true, GoState::running, static_cast<std::int32_t>(g)};
      return 1;
    case Kind::join_begin:
      out[0] = {running, true, GoState::running, event.proc};
      out[1] = {g};
      return 2;
    case Kind::join_end:
      out[0] = {g, true, GoState::running, event.proc};
      out[1] = {event.args[1], true, GoState::waiting};
      return 2;
    default:
      out[0] = {running, true, GoState::running, event.proc};
      return 1;
  }
}

std::uint64_t running_after(const Event& event, std::uint64_t running) {
  switch (event.kind) {
    case Kind::run:
    case Kind::back:
    case Kind::join_begin:
      return event.args[0];
    case Kind::join_end:
      return event.args[1];
    case Kind::end:
    case Kind::yield:
    case Kind::park:
    case Kind::proc_begin:
    case Kind::proc_end:
      return 0;
    default:
      return running;
  }
}

}  // namespace

// Finds what the first event of each goroutine says, and which Ps are held: those whose first event
// is not proc_begin.
GoroutineMap<reading::Before> Reader::Parts::look_ahead(Generation& generation,
                                                        std::map<std::int32_t, Event>& procs) {
  GoroutineMap<Before> befores;
  for (auto& [number, blocks] : generation.streams) {
    std::int32_t proc = proc_of(number);
    Stream stream(proc, blocks);
    std::uint64_t running = 0;
    bool at_start = true;
    while (stream.advance()) {
      const Event& event = stream.head();
      if (stream.is_first_of_block()) running = stream.current_at_block();
      if (at_start && proc != kOutside) {
        if (event.kind == Kind::proc_begin) {
          procs.erase(proc);
        } else {
          procs.try_emplace(proc, Event{.kind = Kind::proc_begin, .proc = proc});
        }
      }
      at_start = false;
      Implied implied[2];
      std::size_t count = implied_by(event, running, implied);
      for (std::size_t i = 0; i < count; ++i) {
        if (implied[i].goroutine == 0) continue;
        Before& before = befores.need(implied[i].goroutine);
        if (before.ticks != 0 && before.ticks <= stream.ticks()) continue;
        before.ticks = std::max<std::uint64_t>(stream.ticks(), 1);
        before.existed = implied[i].existed;
        before.state = implied[i].state;
        before.proc = implied[i].proc;
      }
      running = running_after(event, running);
    }
  }
  return befores;
}

// Makes the events that come first: which Ps are held, and which goroutines live.
void Reader::Parts::make_opening(Generation& generation) {
  std::vector<Event> recorded, names;
  std::map<std::int32_t, Event> procs;
  for (const BlockRef& block : generation.states) {
    Stream stream(kOutside, {block});
    while (stream.advance()) {
      Event event = stream.head();
      if (event.kind == Kind::proc_begin && event.args[1] < kOutsideStream) {
        event.proc = static_cast<std::int32_t>(event.args[1]);
        procs[event.proc] = event;
      }
      if (event.kind == Kind::state) recorded.push_back(event);
      if (event.kind == Kind::name) names.push_back(event);
    }
  }
  GoroutineMap<Before> befores;
  befores = look_ahead(generation, procs);
  for (const Event& event : recorded) {
    std::uint64_t g = event.args[0];
    if (g == 0) continue;
    Before& before = befores.need(g);
    if (before.ticks == 0) {  // it has no event: it is in this state all the time
      auto state = static_cast<GoState>(event.args[1]);
      before.existed = state != GoState::free && state != GoState::ended;
      before.state = state == GoState::fresh ? GoState::runnable : state;
      if (state == GoState::running && event.args[3] != 0 && event.args[3] <= 0xffff)
        before.proc = static_cast<std::int32_t>(event.args[3]) - 1;
    }
    before.recorded = event;
  }
  std::int64_t now = last_ns;
  for (auto& [proc, event] : procs) {
    event.time_ns = now;
    opening.push_back(event);
  }
  befores.for_each([&](std::uint64_t g, Before& before) {
    if (!before.existed) return;
    Event event = before.recorded;
    bool same = static_cast<GoState>(event.args[1]) == before.state;
    event.kind = Kind::state;
    event.proc = before.proc;
    event.goroutine = 0;
    event.args[0] = g;
    event.args[1] = static_cast<std::uint64_t>(before.state);
    if (!same || before.state == GoState::running) event.args[2] = event.args[3] = 0;
    event.time_ns = now;
    opening.push_back(event);
  });
  for (Event& event : names) {
    Before* its = befores.find(event.args[0]);
    if (its == nullptr || !its->existed) continue;
    event.time_ns = now;
    opening.push_back(event);
  }
  std::stable_sort(opening.begin(), opening.end(), [](const Event& a, const Event& b) {
    auto rank = [](const Event& event) { return event.kind == Kind::proc_begin ? 0 : 1; };
    return rank(a) != rank(b) ? rank(a) < rank(b) : a.args[0] < b.args[0];
  });
  for (const Event& event : opening) {
    if (event.kind != Kind::state) continue;
    std::uint64_t g = event.args[0];
    States::Goroutine& its = states.goroutines().need(g);
    switch (static_cast<GoState>(event.args[1])) {
      case GoState::running:
        its.state = States::State::without_p;
        if (event.proc != kOutside && states.current(event.proc) == 0) {
          its = {States::State::running, event.proc};
          states.set_current(event.proc, g);
        }
        break;
      case GoState::waiting:
        its.state = States::State::waiting;
        break;
      default:
        its.state = States::State::runnable;
    }
  }
}

// From this generation to the end of its run().
void Reader::Parts::begin_run() {
  streams.clear();
  heap.clear();
  held.clear();
  opening.clear();
  opening_next = 0;
  states.clear();
  for (const GenerationRef& ref : refs) {
    if (ref.number == place->first) last_ns = std::max(last_ns, ref.begin_ns);
  }
  if (!place->second.is_new_run) make_opening(place->second);
  std::map<std::uint16_t, std::vector<BlockRef>> blocks;
  do {
    for (auto& [number, its] : place->second.streams) {
      std::vector<BlockRef>& all = blocks[number];
      all.insert(all.end(), its.begin(), its.end());
    }
    ++place;
  } while (place != generations.end() && !place->second.is_new_run);
  streams.reserve(blocks.size());
  for (auto& [number, its] : blocks) {
    streams.emplace_back(proc_of(number), std::move(its));
    if (streams.back().advance()) push(streams.size() - 1);
  }
}

// ---- merging

void Reader::Parts::deliver(std::size_t stream, Event& event) {
  Stream& from = streams[stream];
  event = from.head();
  last_ns = std::max(last_ns, ns_of(from.ticks()));
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
      std::int64_t since = ns_of(streams[held[0]].ticks());
      give_up = heap.empty() || ns_of(streams[heap[0]].ticks()) > since + kSlackNs;
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
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status;
  if (fd < 0 || fstat(fd, &status) != 0) {
    error = path + ": " + std::strerror(errno);
    if (fd >= 0) close(fd);
    return std::nullopt;
  }
  auto parts = std::make_unique<Parts>();
  parts->file.bytes = static_cast<std::size_t>(status.st_size);
  if (parts->file.bytes != 0) {
    void* data = mmap(nullptr, parts->file.bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    parts->file.mapped = data != MAP_FAILED;
    parts->file.data = static_cast<const std::uint8_t*>(data);
    if (!parts->file.mapped) error = path + ": " + std::strerror(errno);
  }
  close(fd);
  if (parts->file.bytes != 0 && !parts->file.mapped) return std::nullopt;
  if (!parts->index(error)) {
    error = path + ": " + error;
    return std::nullopt;
  }
  return Reader(std::move(parts));
}

std::optional<Reader> Reader::from_bytes(std::string bytes, std::string& error) {
  auto parts = std::make_unique<Parts>();
  parts->file.held = std::move(bytes);
  parts->file.data = reinterpret_cast<const std::uint8_t*>(parts->file.held.data());
  parts->file.bytes = parts->file.held.size();
  if (!parts->index(error)) return std::nullopt;
  return Reader(std::move(parts));
}

bool Reader::next(Event& event) {
  Parts& parts = *parts_;
  while (!parts.next_of_run(event)) {
    if (parts.place == parts.generations.end()) return false;
    parts.begin_run();
  }
  return true;
}

std::string_view Reader::string(std::uint64_t id) const { return parts_->strings[id]; }
const std::vector<Module>& Reader::modules() const { return parts_->modules; }
const Info& Reader::info() const { return parts_->info; }
std::uint64_t Reader::lost() const { return parts_->lost; }
std::uint64_t Reader::repairs() const { return parts_->repairs; }
const std::vector<GenerationRef>& Reader::generations() const { return parts_->refs; }

void Reader::seek(const GenerationRef& generation) {
  Parts& parts = *parts_;
  parts.place = parts.generations.find(generation.number);
  parts.last_ns = 0;
  parts.streams.clear();
  parts.heap.clear();
  parts.held.clear();
  parts.opening.clear();
  parts.opening_next = 0;
}

}  // namespace magpie::trace
