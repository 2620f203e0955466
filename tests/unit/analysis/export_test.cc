// export_test.cc: the exports, read by others: `go tool trace` where it is installed, and a
// reader of protobuf's wire format that knows nothing of the writer.

#include "analysis/export.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "unit/analysis/events.h"

namespace magpie::analysis {
namespace {

// Everything that Go has no word for.
std::vector<Event> hard_for_go() {
  std::vector<Event> events = {
      event(0, 0, Kind::proc_begin, {11}),
      event(0, 0, Kind::state, {50, 3, 0, 0, 100}),    // runs when the trace begins
      event(0, -1, Kind::state, {51, 4, 10, 1, 100}),  // waits
      event(0, -1, Kind::state, {52, 2, 0, 0, 100}),   // is runnable
      event(10, 0, Kind::create, {1, 100, 1, 900}),
      event(20, 0, Kind::yield, {2}),
      event(30, 0, Kind::run, {1, 1}),
      event(40, 0, Kind::region_begin, {5}),
      event(50, 0, Kind::log, {6, 7}),
      event(60, 0, Kind::task_begin, {1, 0, 8}),
      event(70, 0, Kind::block_begin),
      event(80, -1, Kind::taken, {0, 1, 0}),  // 1 goes on without a P
      event(90, 0, Kind::proc_begin, {12}),
      event(100, 0, Kind::run, {50, 2}),
      event(110, 0, Kind::ready, {51, 0, 0}),
      event(120, -1, Kind::taken, {0, 50, 2}),  // a preemption
      event(130, -1, Kind::stop, {50, 5}),
      event(140, 0, Kind::proc_begin, {13}),
      event(150, 0, Kind::run, {51, 0}),
      event(160, 0, Kind::create, {2, 200, 1}),
      event(170, 0, Kind::join_begin, {2}),
      event(180, 0, Kind::join_end, {2, 51}),
      event(190, 0, Kind::park, {3, 0}),
      event(200, 1, Kind::proc_begin, {14}),
      event(210, 1, Kind::back, {1}),
      event(220, 1, Kind::task_end, {1}),
      event(230, 1, Kind::region_end, {5}),
      event(240, 1, Kind::end),
      event(250, -1, Kind::let_out, {50}),
      event(260, 1, Kind::back, {50}),
      event(270, -1, Kind::ready, {51, 2, 1}),
      event(280, 1, Kind::park, {25, 9}),  // a reason that this program does not know
      event(290, 1, Kind::proc_end),
      event(300, -1, Kind::create, {3, 300, 2}),
  };
  return events;
}

class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& bytes) {
    const int file = mkstemp(path_);
    close(file);
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~TemporaryFile() { std::remove(path_); }
  const char* path() const { return path_; }

 private:
  char path_[32] = "/tmp/magpie-export-XXXXXX";
};

// What a command prints to both of its streams; `status` gets what it returns.
std::string output_of(const std::string& command, int& status) {
  std::string text;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  char buffer[4096];
  for (std::size_t got; (got = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;)
    text.append(buffer, got);
  status = pclose(pipe);
  return text;
}

bool has_go() {
  int status = 0;
  output_of("go tool -n trace", status);
  return status == 0;
}

std::string as_go(const std::vector<Event>& events, std::size_t procs) {
  std::ostringstream out;
  export_go(source_of(events, procs), out);
  return out.str();
}

TEST(GoExport, GoToolTraceListsOurEvents) {
  if (!has_go()) GTEST_SKIP() << "go is not installed (Debian: golang-go)";
  const TemporaryFile file(as_go(stolen_and_blocked(), 2));
  int status = 0;
  const std::string listing = output_of(std::string("go tool trace -d ") + file.path(), status);
  EXPECT_EQ(status, 0) << listing;
  EXPECT_NE(listing.find("GoCreate p=1 g=1"), std::string::npos) << listing;
  EXPECT_NE(listing.find("GoBlockSync p=2 g=2"), std::string::npos) << listing;
  EXPECT_NE(listing.find("GoUnblock p=1 g=1"), std::string::npos) << listing;
  EXPECT_NE(listing.find("GoEnd p=1 g=2"), std::string::npos) << listing;
}

TEST(GoExport, GoToolTraceAcceptsWhatGoHasNoWordFor) {
  if (!has_go()) GTEST_SKIP() << "go is not installed (Debian: golang-go)";
  const TemporaryFile file(as_go(hard_for_go(), 2));
  int status = 0;
  const std::string listing = output_of(std::string("go tool trace -d ") + file.path(), status);
  EXPECT_EQ(status, 0) << listing;
  for (const char* part : {"GoSysBlock", "GoSysExit", "GoPreempt", "UserRegion", "UserTaskCreate",
                           "UserLog", "GoSleep"})
    EXPECT_NE(listing.find(part), std::string::npos) << part << "\n" << listing;
}

TEST(GoExport, TheProfileOfBlockingNamesTheCodeThatWaited) {
  if (!has_go()) GTEST_SKIP() << "go is not installed (Debian: golang-go)";
  const TemporaryFile file(as_go(stolen_and_blocked(), 2));
  int status = 0;
  const std::string profile = std::string(file.path()) + ".pprof";
  output_of(std::string("go tool trace -pprof=sync ") + file.path() + " >" + profile, status);
  EXPECT_EQ(status, 0);
  const std::string top = output_of("go tool pprof -top " + profile, status);
  EXPECT_EQ(status, 0) << top;
  EXPECT_NE(top.find("code_200"), std::string::npos) << top;
  EXPECT_NE(top.find("2.50us"), std::string::npos) << top;
  std::remove(profile.c_str());
}

TEST(GoExport, NamesOfGoroutinesAreThoseOfTheirCode) {
  const std::string bytes = as_go(stolen_and_blocked(), 2);
  EXPECT_EQ(bytes.substr(0, 16), std::string("go 1.19 trace\0\0\0", 16));
  EXPECT_NE(bytes.find("code_200"), std::string::npos);
}

// ---- protobuf

struct Field {
  unsigned type = 0;
  std::uint64_t number = 0;
  std::string bytes;
};
using Fields = std::multimap<unsigned, Field>;

bool parse(const std::string& bytes, Fields& fields) {
  std::size_t at = 0;
  auto varint = [&](std::uint64_t& value) {
    value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
      if (at >= bytes.size()) return false;
      const auto byte = static_cast<unsigned char>(bytes[at++]);
      value |= std::uint64_t{byte & 0x7fu} << shift;
      if ((byte & 0x80) == 0) return true;
    }
    return false;
  };
  while (at < bytes.size()) {
    std::uint64_t key = 0;
    if (!varint(key) || key >> 3 == 0) return false;
    Field field;
    field.type = key & 7;
    if (field.type == 0) {
      if (!varint(field.number)) return false;
    } else if (field.type == 1) {
      if (bytes.size() - at < 8) return false;
      for (int i = 0; i < 8; ++i)
        field.number |= std::uint64_t{static_cast<unsigned char>(bytes[at++])} << (8 * i);
    } else if (field.type == 2) {
      if (!varint(field.number) || field.number > bytes.size() - at) return false;
      field.bytes = bytes.substr(at, field.number);
      at += field.number;
    } else {
      return false;
    }
    fields.emplace(static_cast<unsigned>(key >> 3), field);
  }
  return true;
}

std::uint64_t number_of(const Fields& fields, unsigned field) {
  auto found = fields.find(field);
  return found == fields.end() ? 0 : found->second.number;
}

// Perfetto's rules: every event is on a described track, slices on a track nest, a flow that ends
// has begun.
struct PerfettoCheck {
  std::map<std::uint64_t, std::string> tracks;
  std::set<std::uint64_t> counters, begun, ended;
  std::map<std::uint64_t, std::string> names;
  std::map<std::uint64_t, std::multimap<std::uint64_t, int>> slices;  // track, time, +1 or -1
  std::size_t instants = 0, values = 0;

  void packet(const std::string& bytes) {
    Fields packet;
    ASSERT_TRUE(parse(bytes, packet));
    EXPECT_EQ(number_of(packet, 10), 1u);  // trusted_packet_sequence_id
    if (auto found = packet.find(60); found != packet.end()) descriptor(found->second.bytes);
    if (auto found = packet.find(12); found != packet.end()) interned(found->second.bytes);
    if (auto found = packet.find(11); found != packet.end())
      track_event(found->second.bytes, number_of(packet, 8));
  }
  void descriptor(const std::string& bytes) {
    Fields fields;
    ASSERT_TRUE(parse(bytes, fields));
    const std::uint64_t uuid = number_of(fields, 1);
    EXPECT_NE(uuid, 0u);
    if (auto name = fields.find(2); name != fields.end()) tracks[uuid] = name->second.bytes;
    tracks.try_emplace(uuid);
    if (auto parent = fields.find(5); parent != fields.end()) {
      EXPECT_TRUE(tracks.contains(parent->second.number));
    }
    if (fields.contains(8)) counters.insert(uuid);
  }
  void interned(const std::string& bytes) {
    Fields fields, name;
    ASSERT_TRUE(parse(bytes, fields));
    ASSERT_TRUE(parse(fields.find(2)->second.bytes, name));
    names[number_of(name, 1)] = name.find(2)->second.bytes;
  }
  void track_event(const std::string& bytes, std::uint64_t time) {
    Fields fields;
    ASSERT_TRUE(parse(bytes, fields));
    const std::uint64_t track = number_of(fields, 11), type = number_of(fields, 9);
    EXPECT_TRUE(tracks.contains(track)) << track;
    EXPECT_EQ(type == 4, counters.contains(track));
    if (type == 1) {
      slices[track].emplace(time, +1);
      if (auto id = fields.find(10); id != fields.end()) {
        EXPECT_TRUE(names.contains(id->second.number));
      }
    }
    if (type == 2) slices[track].emplace(time, -1);
    instants += type == 3;
    values += type == 4;
    for (auto [at, end] = fields.equal_range(47); at != end; ++at) begun.insert(at->second.number);
    for (auto [at, end] = fields.equal_range(48); at != end; ++at) ended.insert(at->second.number);
  }
  void finish() {
    for (std::uint64_t flow : ended) EXPECT_TRUE(begun.contains(flow)) << flow;
    for (const auto& [track, changes] : slices) {
      int open = 0;
      for (const auto& [time, change] : changes) open += change;
      EXPECT_EQ(open, 0) << tracks[track];
    }
  }
};

PerfettoCheck perfetto(const std::vector<Event>& events, std::size_t procs) {
  std::ostringstream out;
  export_perfetto(source_of(events, procs), out);
  PerfettoCheck check;
  Fields trace;
  EXPECT_TRUE(parse(out.str(), trace));
  for (const auto& [field, content] : trace) {
    EXPECT_EQ(field, 1u);
    check.packet(content.bytes);
  }
  check.finish();
  return check;
}

TEST(PerfettoExport, PsAreTracksGoroutinesAreSlicesAndWakeUpsAreFlows) {
  const PerfettoCheck check = perfetto(stolen_and_blocked(), 2);
  std::map<std::string, std::uint64_t> by_name;
  for (const auto& [uuid, name] : check.tracks) by_name[name] = uuid;
  ASSERT_TRUE(by_name.contains("P0"));
  ASSERT_TRUE(by_name.contains("P1"));
  EXPECT_EQ(check.slices.at(by_name["P0"]).size(), 2u * 2);  // goroutines 1 and 2
  EXPECT_EQ(check.slices.at(by_name["P1"]).size(), 3u * 2);  // goroutine 2, and two searches
  EXPECT_EQ(check.names.at(2), "2 code_200");
  EXPECT_EQ(check.begun.size(), 4u);  // two started, one woken, one stolen
  EXPECT_EQ(check.ended.size(), 4u);
}

TEST(PerfettoExport, WhatIsOddInATraceIsStillWellFormed) {
  const PerfettoCheck check = perfetto(hard_for_go(), 2);
  EXPECT_GT(check.instants, 0u);
}

TEST(PerfettoExport, QueuesAreCounters) {
  const PerfettoCheck check =
      perfetto({event(0, 0, Kind::proc_begin, {1}), event(5, 0, Kind::queue, {7, 9})}, 1);
  EXPECT_EQ(check.values, 2u);
}

TEST(JsonExport, EachEventIsOneObjectOnALine) {
  std::ostringstream out;
  export_json(source_of(stolen_and_blocked(), 2), out);
  const std::string text = out.str();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'),
            static_cast<std::ptrdiff_t>(stolen_and_blocked().size()));
  EXPECT_NE(text.find(R"({"t":2500,"p":1,"kind":"park","reason":"Mutex lock","object":"0xabc"})"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(R"("kind":"create","g":2,"body":"code_200","place":"ring")"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace magpie::analysis
