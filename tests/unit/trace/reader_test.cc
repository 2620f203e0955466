#include "trace/reader.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "trace/file_builder.h"
#include "trace/goroutine_map.h"

namespace magpie::trace {
namespace {

std::vector<Event> all_events(Reader& reader) {
  std::vector<Event> events;
  for (Event event; reader.next(event);) events.push_back(event);
  return events;
}

Reader read_trace(std::string bytes) {
  std::string error;
  std::optional<Reader> reader = Reader::from_bytes(std::move(bytes), error);
  EXPECT_TRUE(reader.has_value()) << error;
  return std::move(*reader);
}

// Two goroutines on two Ps: 1 starts 2, which another P steals and runs.
FileBuilder two_procs() {
  FileBuilder file({.procs = 2});
  file.put(0, 100, Kind::proc_begin, {77, 0});
  file.put(0, 110, Kind::create, {1, 0x1000, 0, 0});
  file.put(0, 120, Kind::run, {1, 0});
  file.put(0, 200, Kind::create, {2, 0x2000, 0, 0x3000});
  file.put(1, 210, Kind::proc_begin, {78, 1});
  file.put(1, 300, Kind::steal, {0, 1, 1});
  file.put(1, 310, Kind::run, {2, 7});
  file.put(0, 400, Kind::park, {4, 0xabc});
  file.put(1, 500, Kind::ready, {1, 0, 0});
  return file;
}

TEST(TraceReader, GivesTheEventsOfAllStreamsInTheOrderOfTime) {
  Reader reader = read_trace(two_procs().finish());
  std::vector<Event> events = all_events(reader);
  ASSERT_EQ(events.size(), 9u);
  for (std::size_t i = 1; i < events.size(); ++i)
    EXPECT_LE(events[i - 1].time_ns, events[i].time_ns);
  EXPECT_EQ(events[3].args[1], 0x2000u);
  EXPECT_EQ(events[3].args[3], 0x3000u);
  EXPECT_EQ(events[7].goroutine, 1u);  // the one that parks
  EXPECT_EQ(events[7].args[1], 0xabcu);
  EXPECT_EQ(reader.repairs(), 0u);
  EXPECT_TRUE(reader.info().is_whole);
}

// Its number would be the length of a table.
TEST(TraceReader, DoesNotBelieveAPOfAnyNumber) {
  FileBuilder file = two_procs();
  file.put(0, 600, Kind::taken, {std::uint64_t{1} << 30, 5, 0});
  Reader reader = read_trace(file.finish());
  for (const Event& event : all_events(reader)) {
    if (event.kind == Kind::state) {
      EXPECT_LT(event.proc, 2);
    }
  }
}

// One flipped bit in the header of a block.
TEST(TraceReader, LeavesOutAStreamOfAPThatCannotBe) {
  FileBuilder file = two_procs();
  file.put(40'000, 600, Kind::run, {1, 0});
  Reader reader = read_trace(file.finish());
  EXPECT_EQ(all_events(reader).size(), 9u);
  EXPECT_FALSE(reader.is_whole());
}

TEST(TraceReader, BelievesAsManyPsAsTheTraceTellsOf) {
  FileBuilder file({.procs = 3000});
  file.put(2999, 100, Kind::create, {1, 0, 0, 0});
  file.put(2999, 200, Kind::run, {1, 0});
  Reader reader = read_trace(file.finish());
  EXPECT_EQ(all_events(reader).size(), 2u);
  EXPECT_TRUE(reader.is_whole());
}

std::string block_of(BlockType type, std::uint32_t generation, const std::string& payload) {
  const BlockHeader header{kBlockMagic,
                           static_cast<std::uint8_t>(type),
                           0,
                           0,
                           generation,
                           static_cast<std::uint32_t>(payload.size()),
                           1};
  return std::string(reinterpret_cast<const char*>(&header), sizeof header) + payload;
}

// What a begin block says before its kinds.
std::string beginning_of_a_begin_block() {
  std::string payload;
  for (int i = 0; i < 9; ++i) append_number(payload, 1);
  append_string(payload, "program");
  return payload;
}

// It would take hours to compare each with all others, and gigabytes to give each generation its
// own kinds of events.
TEST(TraceReader, TablesOfAnyLengthTakeNeitherTimeNorMemory) {
  std::string modules, totals, kinds = beginning_of_a_begin_block();
  for (int i = 0; i < 500'000; ++i) append_module(modules, 1000 + i, 0, 0, "", "");
  for (int i = 0; i < 4; ++i) append_number(totals, 1);
  append_number(totals, 1'000'000);
  for (int i = 0; i < 1'000'000; ++i) {
    append_string(totals, std::to_string(i));
    append_number(totals, 1);
  }
  append_number(kinds, 1'000'000);
  kinds.append(1'000'000, '\1');  // empty strings
  append_number(kinds, 0);
  std::string bytes = two_procs().finish();
  bytes += block_of(BlockType::modules, 0, modules) + block_of(BlockType::end, 0, totals);
  bytes += block_of(BlockType::begin, 1, kinds);
  for (std::uint32_t generation = 2; generation < 1000; ++generation)
    bytes += block_of(BlockType::events, generation, "");
  Reader reader = read_trace(std::move(bytes));
  EXPECT_EQ(reader.modules().size(), 100'000u);
  EXPECT_EQ(reader.info().totals.size(), 1024u);
  EXPECT_EQ(reader.generations().size(), 1000u);
  EXPECT_EQ(all_events(reader).size(), 9u);
}

TEST(TraceReader, ReadsAsManyRunsAsThereAre) {
  std::string bytes = two_procs().finish();
  std::string begin = block_of(BlockType::begin, 0, beginning_of_a_begin_block() + "\1\1");
  begin[5] = kNewRun;
  for (std::uint32_t run = 1; run < 100'000; ++run) {
    std::memcpy(begin.data() + 8, &run, sizeof run);
    bytes += begin;
  }
  Reader reader = read_trace(std::move(bytes));
  EXPECT_EQ(all_events(reader).size(), 9u);
  EXPECT_EQ(reader.generations().size(), 100'000u);
}

TEST(TraceReader, AnEventOfAMillionArgumentsEndsWithItsBlock) {
  std::string begin = beginning_of_a_begin_block();
  append_number(begin, 2);
  for (int kind = 0; kind < 2; ++kind) {
    append_number(begin, 1'000'000);
    begin.append(1'000'000, 'n');
  }
  append_number(begin, 0);
  std::string event;
  append_number(event, 0);
  event += '\1';
  append_number(event, 1);
  std::string bytes = two_procs().finish() + block_of(BlockType::begin, 1, begin);
  for (int i = 0; i < 100'000; ++i) bytes += block_of(BlockType::events, 1, event);
  Reader reader = read_trace(std::move(bytes));
  EXPECT_EQ(all_events(reader).size(), 9u);
}

TEST(TraceReader, AnEventWaitsForTheOneThatExplainsIt) {
  FileBuilder file({.procs = 2});
  file.put(0, 100, Kind::proc_begin, {77, 0});
  file.put(1, 100, Kind::proc_begin, {78, 1});
  file.put(1, 200, Kind::run, {5, 7});  // its clock is a hair behind
  file.put(0, 210, Kind::create, {5, 0, 0, 0});
  Reader reader = read_trace(file.finish());
  std::vector<Event> events = all_events(reader);
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[2].kind, Kind::run) << "a goroutine that nobody knows may run";
  FileBuilder again({.procs = 2});
  again.put(0, 100, Kind::create, {5, 0, 0, 0});
  again.put(0, 110, Kind::run, {5, 0});
  again.put(0, 120, Kind::park, {1, 0});
  again.put(1, 200, Kind::run, {5, 7});
  again.put(0, 210, Kind::ready, {5, 0, 0});
  Reader repaired = read_trace(again.finish());
  events = all_events(repaired);
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[3].kind, Kind::ready);
  EXPECT_EQ(events[4].kind, Kind::run);
  EXPECT_EQ(repaired.repairs(), 0u);
}

TEST(TraceReader, BelievesAnEventThatNothingExplainsAndCountsIt) {
  FileBuilder file;
  file.put(0, 100, Kind::create, {5, 0, 0, 0});
  file.put(0, 110, Kind::run, {5, 0});
  file.put(0, 120, Kind::park, {1, 0});
  file.put(0, 130, Kind::run, {5, 0});  // its `ready` was lost
  Reader reader = read_trace(file.finish());
  EXPECT_EQ(all_events(reader).size(), 4u);
  EXPECT_EQ(reader.repairs(), 1u);
}

TEST(TraceReader, AGenerationReadAloneBeginsWithTheStatesThatItsEventsImply) {
  FileBuilder file({.procs = 2});
  file.put(0, 100, Kind::proc_begin, {77, 0});
  for (std::uint64_t g = 1; g <= 3; ++g) file.put(0, 100, Kind::create, {g, 0, 0, 0});
  file.put(0, 110, Kind::run, {1, 0});
  file.put(0, 120, Kind::park, {1, 0});
  file.put(0, 130, Kind::run, {2, 1});
  file.next_generation(200);
  file.put(0, 210, Kind::ready, {1, 0, 0});
  file.put(0, 220, Kind::end);
  file.put(0, 230, Kind::run, {3, 1});
  Reader reader = read_trace(file.finish());
  ASSERT_EQ(reader.generations().size(), 2u);
  reader.seek(reader.generations()[1]);
  std::vector<Event> events = all_events(reader);
  ASSERT_EQ(events.size(), 7u);
  EXPECT_EQ(events[0].kind, Kind::proc_begin);
  std::vector<GoState> states;
  for (int i = 1; i <= 3; ++i) {
    EXPECT_EQ(events[i].kind, Kind::state);
    EXPECT_EQ(events[i].args[0], static_cast<std::uint64_t>(i));
    states.push_back(static_cast<GoState>(events[i].args[1]));
  }
  EXPECT_EQ(states, (std::vector{GoState::waiting, GoState::running, GoState::runnable}));
  EXPECT_EQ(events[5].goroutine, 2u);  // whose end it is
  EXPECT_EQ(reader.repairs(), 0u);
}

TEST(TraceReader, GivesTheSameNumberToTheSameText) {
  FileBuilder file;
  file.text(0, 1, Kind::region_begin, {"parse"});
  file.text(0, 2, Kind::region_end, {"parse"});
  file.text(0, 3, Kind::log, {"http", "GET /"});
  Reader reader = read_trace(file.finish());
  std::vector<Event> events = all_events(reader);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].args[0], events[1].args[0]);
  EXPECT_EQ(reader.string(events[0].args[0]), "parse");
  EXPECT_EQ(reader.string(events[2].args[0]), "http");
  EXPECT_EQ(reader.string(events[2].args[1]), "GET /");
}

TEST(TraceReader, ReadsWhatIsThereOfAFileThatIsCutOffAnywhere) {
  const std::string whole = two_procs().finish();
  std::size_t most = 0;
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    std::string error;
    std::optional<Reader> reader = Reader::from_bytes(whole.substr(0, bytes), error);
    if (!reader) {
      EXPECT_LT(bytes, kFileHeaderBytes);
      EXPECT_FALSE(error.empty());
      continue;
    }
    EXPECT_FALSE(reader->info().is_whole);
    std::size_t count = all_events(*reader).size();
    EXPECT_LE(count, 10u);  // `proc_begin` may be implied
    most = std::max(most, count);
  }
  EXPECT_GE(most, 9u);
}

// A file with these bytes, until the end of the test.
class TraceOnDisk {
 public:
  explicit TraceOnDisk(const std::string& bytes) : file_(mkstemp(path_)) { write(bytes); }
  ~TraceOnDisk() {
    close(file_);
    unlink(path_);
  }
  TraceOnDisk(const TraceOnDisk&) = delete;
  TraceOnDisk& operator=(const TraceOnDisk&) = delete;

  const char* path() const { return path_; }
  void make_shorter(std::size_t bytes) {
    ASSERT_EQ(ftruncate(file_, static_cast<off_t>(bytes)), 0);
  }
  void replace_by(const std::string& bytes) {
    unlink(path_);
    close(file_);
    file_ = open(path_, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    write(bytes);
  }

 private:
  void write(const std::string& bytes) {
    const auto size = static_cast<ssize_t>(bytes.size());
    EXPECT_EQ(pwrite(file_, bytes.data(), bytes.size(), 0), size);
  }

  char path_[32] = "/tmp/magpie-reader-XXXXXX";
  int file_;
};

Reader open_trace(const char* path) {
  std::string error;
  std::optional<Reader> reader = Reader::open(path, error);
  EXPECT_TRUE(reader.has_value()) << error;
  return std::move(*reader);
}

// Goroutine 1 calls yield and runs on, again and again.
std::string many_turns(int turns, std::size_t block_bytes) {
  FileBuilder file({.block_bytes = block_bytes});
  file.put(0, 100, Kind::create, {1, 0, 0, 0});
  for (int i = 0; i < turns; ++i) {
    file.put(0, 200 + 10 * i, Kind::run, {1, 0});
    file.put(0, 205 + 10 * i, Kind::yield, {0});
  }
  return file.finish();
}

TEST(TraceReader, ReadsBlocksOfAnyLength) {
  for (std::size_t block_bytes : {100, 16'384, 65'536, 1'000'000}) {
    Reader reader = read_trace(many_turns(100'000, block_bytes));
    EXPECT_EQ(all_events(reader).size(), 200'001u) << block_bytes;
    EXPECT_TRUE(reader.is_whole());
  }
}

// With the file mapped, the process would end by SIGBUS.
TEST(TraceReader, AFileThatBecomesShorterMeanwhileEndsTheTraceAndIsTold) {
  const std::string bytes = many_turns(100'000, 16'384);
  TraceOnDisk file(bytes);
  Reader reader = open_trace(file.path());
  EXPECT_TRUE(reader.is_whole());
  Event event;
  ASSERT_TRUE(reader.next(event));
  file.make_shorter(bytes.size() / 2);
  const std::size_t events = 1 + all_events(reader).size();
  EXPECT_GT(events, 90'000u);
  EXPECT_LT(events, 110'000u);
  EXPECT_FALSE(reader.is_whole());
  file.make_shorter(0);
  reader.seek(reader.generations()[0]);
  EXPECT_TRUE(all_events(reader).empty());
}

TEST(TraceReader, ATwinReadsTheFileThatWasOpenedAndNotOneThatTookItsName) {
  TraceOnDisk file(two_procs().finish());
  Reader reader = open_trace(file.path());
  file.replace_by(many_turns(3, 16'384));
  Reader twin = reader.twin();
  EXPECT_EQ(all_events(twin).size(), 9u);
  EXPECT_EQ(all_events(reader).size(), 9u);
}

TEST(TraceReader, GoesOnBehindBytesThatAreNoBlock) {
  FileBuilder file;
  file.put(0, 1, Kind::create, {1, 0, 0, 0});
  file.next_generation(10);
  file.put(0, 11, Kind::run, {1, 0});
  std::string bytes = file.finish();
  bytes.insert(kFileHeaderBytes, "rubbish");
  Reader reader = read_trace(bytes);
  EXPECT_EQ(all_events(reader).size(), 2u);
  EXPECT_FALSE(reader.info().is_whole);
}

TEST(TraceReader, RefusesWhatIsNoTraceAndSaysWhy) {
  std::string error;
  EXPECT_FALSE(Reader::from_bytes("hello, this is some text", error).has_value());
  EXPECT_NE(error.find("MAGPIE TRACE"), std::string::npos);
  std::string newer = two_procs().finish();
  newer[14] = 99;
  EXPECT_FALSE(Reader::from_bytes(newer, error).has_value());
  EXPECT_NE(error.find("version 99"), std::string::npos);
  EXPECT_FALSE(Reader::open("/there/is/no/such/file", error).has_value());
}

TEST(TraceReader, RefusesAPipeWithoutWaitingForItsWriter) {
  char folder[] = "/tmp/magpie-reader-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string path = std::string(folder) + "/pipe";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  std::string error;
  EXPECT_FALSE(Reader::open(path, error).has_value());
  EXPECT_NE(error.find("is not a file"), std::string::npos) << error;
  std::remove(path.c_str());
  rmdir(folder);
}

TEST(TraceFormat, NumbersOfEverySizeComeBack) {
  for (int shift = 0; shift < 64; ++shift) {
    for (std::uint64_t value : {std::uint64_t{1} << shift, (std::uint64_t{1} << shift) - 1}) {
      std::uint8_t bytes[16];
      std::uint8_t* end = put_number(bytes, value);
      Input input(bytes, static_cast<std::size_t>(end - bytes));
      EXPECT_EQ(input.number(), value);
      EXPECT_TRUE(input.is_at_end());
      EXPECT_EQ(unzigzag(zigzag(value)), value);
      Input cut_off(bytes, static_cast<std::size_t>(end - bytes) - 1);
      EXPECT_EQ(cut_off.number(), 0u);
      EXPECT_TRUE(cut_off.is_broken());
    }
  }
}

TEST(GoroutineMap, KeepsItsEntriesWhileOthersComeAndGo) {
  GoroutineMap<std::uint64_t> map;
  for (std::uint64_t g = 1; g <= 5000; ++g) {
    map.need(g) = 3 * g;
    if (g % 3 == 0) map.erase(g - 1);
  }
  for (std::uint64_t g = 1; g <= 5000; ++g) {
    bool erased = g % 3 == 2 && g != 5000;
    std::uint64_t* there = map.find(g);
    ASSERT_EQ(there == nullptr, erased) << g;
    if (!erased) {
      EXPECT_EQ(*there, 3 * g);
    }
  }
}

}  // namespace
}  // namespace magpie::trace
