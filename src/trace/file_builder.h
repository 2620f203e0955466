// file_builder.h: makes a trace file in memory, event by event. For tests and tools: the runtime
// itself writes with recorder.h.
//
//   FileBuilder file({.procs = 2});
//   file.put(0, 1'000, Kind::create, {7, body, 0, caller});
//   file.put(0, 2'000, Kind::run, {7, 0});
//   file.text(0, 2'500, Kind::region_begin, {"parse"});
//   std::string bytes = file.finish();
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "trace/event.h"
#include "trace/format.h"
#include "trace/meta.h"

namespace magpie::trace {

class FileBuilder {
 public:
  struct Settings {
    std::uint32_t procs = 1;
    std::string program = "synthetic";
    std::int64_t wall_ns = 0;
    std::size_t block_bytes = 16384;
  };

  FileBuilder() : FileBuilder(Settings{}) {}
  explicit FileBuilder(Settings settings) : settings_(std::move(settings)) {
    char header[kFileHeaderBytes];
    write_file_header(header);
    bytes_.assign(header, sizeof header);
    begin_generation(0);
  }

  // The times of each stream must not fall. proc: kOutside for the outside stream.
  void put(std::int32_t proc, std::int64_t time_ns, Kind kind,
           std::initializer_list<std::uint64_t> numbers = {}) {
    put_event(proc, time_ns, kind, numbers, {});
  }
  // The strings of the event come after its numbers.
  void text(std::int32_t proc, std::int64_t time_ns, Kind kind,
            std::initializer_list<std::string_view> strings,
            std::initializer_list<std::uint64_t> numbers = {}) {
    put_event(proc, time_ns, kind, numbers, strings);
  }

  void add_module(const Module& module) {
    std::string payload;
    append_module(payload, module.start, module.end, module.offset, module.path, module.build_id);
    add_block(BlockType::modules, kOutsideStream, 0, payload);
  }

  void next_generation(std::int64_t time_ns) {
    end_generation(time_ns);
    ++generation_;
    begin_generation(time_ns);
  }

  std::string finish(std::int64_t time_ns = -1) {
    end_generation(time_ns < 0 ? last_ns_ : time_ns);
    return std::move(bytes_);
  }

 private:
  struct Stream {
    std::string payload;
    std::uint64_t first = 0, last = 0, last_object = 0, current = 0;
  };

  static std::uint16_t stream_of(std::int32_t proc) {
    return proc == kOutside ? kOutsideStream : static_cast<std::uint16_t>(proc);
  }

  void put_event(std::int32_t proc, std::int64_t time_ns, Kind kind,
                 std::initializer_list<std::uint64_t> numbers,
                 std::initializer_list<std::string_view> strings) {
    Stream& stream = streams_[stream_of(proc)];
    auto ticks = static_cast<std::uint64_t>(time_ns);
    if (time_ns > last_ns_) last_ns_ = time_ns;
    if (stream.payload.empty()) {
      stream.first = stream.last = ticks;
      stream.last_object = 0;
      append_number(stream.payload, stream.current);
    }
    stream.payload.push_back(static_cast<char>(kind));
    append_number(stream.payload, ticks - stream.last);
    stream.last = ticks;
    auto number = numbers.begin();
    auto string = strings.begin();
    for (char type : kKindInfo[static_cast<std::size_t>(kind)].args) {
      if (type == 's') {
        append_string(stream.payload, string != strings.end() ? *string++ : std::string_view{});
        continue;
      }
      std::uint64_t value = number != numbers.end() ? *number++ : 0;
      if (type == 'o') {
        append_number(stream.payload, zigzag(value - stream.last_object));
        stream.last_object = value;
      } else {
        append_number(stream.payload, type == 'p' ? zigzag(value) : value);  // the anchor is 0
      }
    }
    follow(stream, kind, numbers);
    if (stream.payload.size() > settings_.block_bytes) flush(stream_of(proc), stream);
  }

  static void follow(Stream& stream, Kind kind, std::initializer_list<std::uint64_t> numbers) {
    switch (kind) {
      case Kind::run:
      case Kind::back:
      case Kind::join_begin:
        stream.current = *numbers.begin();
        return;
      case Kind::join_end:
        stream.current = numbers.size() > 1 ? numbers.begin()[1] : 0;
        return;
      case Kind::end:
      case Kind::yield:
      case Kind::park:
      case Kind::proc_end:
        stream.current = 0;
        return;
      default:
        return;
    }
  }

  void flush(std::uint16_t number, Stream& stream) {
    if (stream.payload.empty()) return;
    add_block(BlockType::events, number, stream.first, stream.payload);
    stream.payload.clear();
  }

  void begin_generation(std::int64_t time_ns) {
    BeginPayload begin;
    begin.now = {static_cast<std::uint64_t>(time_ns), time_ns};
    begin.ticks_per_second = 1'000'000'000;
    begin.wall_ns = settings_.wall_ns;
    begin.pid = 1;
    begin.procs = settings_.procs;
    begin.program = settings_.program;
    add_block(BlockType::begin, kOutsideStream, static_cast<std::uint64_t>(time_ns),
              encode(begin), generation_ == 0 ? kNewRun : 0);
  }

  void end_generation(std::int64_t time_ns) {
    for (auto& [number, stream] : streams_) flush(number, stream);
    EndPayload end;
    end.now = {static_cast<std::uint64_t>(time_ns), time_ns};
    add_block(BlockType::end, kOutsideStream, static_cast<std::uint64_t>(time_ns), encode(end));
  }

  void add_block(BlockType type, std::uint16_t stream, std::uint64_t first_ticks,
                 std::string_view payload, std::uint8_t flags = 0) {
    BlockHeader header{kBlockMagic,
                       static_cast<std::uint8_t>(type),
                       flags,
                       stream,
                       generation_,
                       static_cast<std::uint32_t>(payload.size()),
                       first_ticks};
    bytes_.append(reinterpret_cast<const char*>(&header), sizeof header);
    bytes_.append(payload);
  }

  Settings settings_;
  std::string bytes_;
  std::map<std::uint16_t, Stream> streams_;
  std::uint32_t generation_ = 0;
  std::int64_t last_ns_ = 0;
};

}  // namespace magpie::trace
