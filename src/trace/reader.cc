#include "trace/reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
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
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe may have no writer
  struct stat status;
  if (fd < 0 || fstat(fd, &status) != 0) {
    error = path + ": " + std::strerror(errno);
    if (fd >= 0) close(fd);
    return std::nullopt;
  }
  if (!S_ISREG(status.st_mode)) {
    error = path + ": is not a file";
    close(fd);
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
