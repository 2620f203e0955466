// buffered_test.cc: lines and pieces of streams through memory.
#include <magpie/magpie.h>
#include <magpie/net/buffered.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/memory_stream.h"
#include "support/net_test.h"

namespace magpie::net {
namespace {

using support::error_of;
using support::MemoryStream;

// A stream that holds a text and then ends, and gives so many bytes at a time.
std::unique_ptr<MemoryStream> stream_of(std::string_view text,
                                        std::size_t at_once = MemoryStream::kNoLimit) {
  auto [one, other] = MemoryStream::pair(at_once);
  other->write(text);
  other->shutdown_write();
  return std::move(one);
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

using Lines = std::vector<std::string>;

Lines lines_of(std::string_view text, std::size_t at_once, std::size_t capacity) {
  auto stream = stream_of(text, at_once);
  BufferedReader reader(*stream, capacity);
  Lines lines;
  for (std::string_view line : reader.lines()) lines.emplace_back(line);
  return lines;
}

RT_TEST(BufferedReader, GivesLinesHoweverTheBytesArrive) {
  for (std::size_t at_once : {1, 2, 3, 5, 1000}) {
    for (std::size_t capacity : {1, 2, 4, 100}) {
      EXPECT_EQ(lines_of("a\nbcd\r\n\n\r\nlonger than the rest\nlast", at_once, capacity),
                (Lines{"a", "bcd", "", "", "longer than the rest", "last"}));
      EXPECT_EQ(lines_of("one\n", at_once, capacity), Lines{"one"});
      EXPECT_EQ(lines_of("\n", at_once, capacity), Lines{""});
      EXPECT_EQ(lines_of("", at_once, capacity), Lines{});
      EXPECT_EQ(lines_of("a\rb\r", at_once, capacity), Lines{"a\rb\r"});
    }
  }
}

RT_TEST(BufferedReader, EveryReadEndsWithItsContextAndKeepsWhatHasCome) {
  auto [stream, other] = MemoryStream::pair();
  other->write("ab");
  BufferedReader reader(*stream);
  EXPECT_EQ(text_of(reader.peek(2)), "ab");
  Context over = Context::background().with_timeout(std::chrono::milliseconds(2));
  EXPECT_EQ(error_of([&] { reader.peek(3, over); }), std::errc::timed_out);
  EXPECT_EQ(error_of([&] { reader.read_all(10, over); }), std::errc::timed_out);
  std::error_code error;
  EXPECT_EQ(text_of(reader.peek(2, over, error)), "ab");  // it need not wait
  EXPECT_FALSE(error);
  EXPECT_EQ(reader.read_all(10, over, error), "");
  EXPECT_EQ(error, std::errc::timed_out);
  std::byte three[3];
  EXPECT_EQ(reader.read_exact(three, over, error), 2u);
  EXPECT_EQ(error, std::errc::timed_out);

  auto [next, writer] = MemoryStream::pair();
  writer->write("abcd");
  writer->shutdown_write();
  BufferedReader whole(*next);
  whole.read_exact(three, Context::background());
  EXPECT_EQ(text_of(three), "abc");
  EXPECT_EQ(text_of(whole.peek(1, Context::background())), "d");
  EXPECT_EQ(whole.read_all(10, Context::background()), "d");
}

RT_TEST(BufferedReader, ALoopOverLinesEndsWithItsContext) {
  auto [client, server] = support::tcp_pair();
  client.write("one\ntwo\nthr");
  BufferedReader reader(server);
  const Context context = Context::background().with_cancel();
  std::vector<std::string> lines;
  EXPECT_EQ(support::error_of([&] {
              for (std::string_view line : reader.lines(100, context)) {
                lines.emplace_back(line);
                if (lines.size() == 2) context.cancel();
              }
            }),
            std::errc::operation_canceled);
  EXPECT_EQ(lines, std::vector<std::string>({"one", "two"}));
  client.write("ee\n");
  EXPECT_EQ(reader.read_line(), "three");  // nothing was lost
}

RT_TEST(BufferedWriter, AWriteThatHasToWaitEndsWithItsContext) {
  auto [stream, other] = MemoryStream::pair(MemoryStream::kNoLimit, 4);
  BufferedWriter writer(*stream, 8);
  Context over = Context::background().with_timeout(std::chrono::milliseconds(2));
  writer.write("fits", Context::background());
  writer.flush(Context::background());
  writer.write("more", over);
  EXPECT_EQ(error_of([&] { writer.flush(over); }), std::errc::timed_out);
  std::error_code error;
  writer.write("after an error", over, error);
  EXPECT_TRUE(error);
  writer.flush(over, error);
  EXPECT_TRUE(error);
}

RT_TEST(BufferedReader, TellsTheEndFromAnEmptyLine) {
  auto stream = stream_of("x\n\n");
  BufferedReader reader(*stream);
  EXPECT_EQ(reader.read_line(), "x");
  EXPECT_EQ(reader.read_line(), "");
  EXPECT_EQ(reader.read_line(), std::nullopt);
  EXPECT_EQ(reader.read_line(), std::nullopt);
}

RT_TEST(BufferedReader, TakesNothingOfALineThatIsTooLong) {
  for (std::size_t at_once : {1, 3, 1000}) {
    auto stream = stream_of("1234\n12345\nrest", at_once);
    BufferedReader reader(*stream, 2);
    EXPECT_EQ(reader.read_line(5), "1234");
    EXPECT_EQ(error_of([&] { (void)reader.read_line(5); }),
              std::make_error_code(std::errc::message_size));
    std::error_code error;
    EXPECT_EQ(reader.read_line(5, error), std::nullopt);
    EXPECT_EQ(error, std::errc::message_size);
    EXPECT_EQ(reader.read_line(6, error), "12345");
    EXPECT_FALSE(error);
    EXPECT_EQ(reader.read_line(4), "rest");  // the end is as good as a line's
    EXPECT_EQ(reader.read_line(0), std::nullopt);
  }
}

RT_TEST(BufferedReader, ReadsUpToADelimiterOfSeveralBytes) {
  for (std::size_t at_once : {1, 2, 3, 1000}) {
    auto stream = stream_of("head\r\n: x\r\r\n\r\nbody", at_once);
    BufferedReader reader(*stream, 3);
    EXPECT_EQ(reader.read_until("\r\n\r\n"), "head\r\n: x\r\r\n\r\n");
    EXPECT_THROW((void)reader.read_until(""), std::invalid_argument);
    EXPECT_EQ(reader.read_until("\r\n\r\n"), "body");
    EXPECT_EQ(reader.read_until("\r\n\r\n"), std::nullopt);
  }
}

RT_TEST(BufferedReader, PeeksWithoutTaking) {
  auto stream = stream_of("abcdef", 2);
  BufferedReader reader(*stream, 2);
  EXPECT_TRUE(reader.buffered().empty());
  EXPECT_EQ(text_of(reader.peek(3)).substr(0, 3), "abc");
  EXPECT_GE(reader.buffered().size(), 3U);
  EXPECT_EQ(text_of(reader.peek(100)), "abcdef");
  std::byte bytes[4];
  reader.read_exact(bytes);
  EXPECT_EQ(text_of(bytes), "abcd");
  EXPECT_EQ(text_of(reader.peek(1)), "ef");
  std::error_code error;
  reader.read_exact(bytes, error);
  EXPECT_EQ(error, StreamErrc::end_of_stream);
  EXPECT_THROW(reader.read_exact(bytes), EndOfStream);
  EXPECT_EQ(reader.read(bytes), 0U);
}

RT_TEST(BufferedReader, ReadsAllWithinALimit) {
  const std::string text(10'000, 'x');
  auto stream = stream_of(text, 777);
  BufferedReader reader(*stream, 100);
  EXPECT_EQ(error_of([&] { (void)reader.read_all(9'999); }),
            std::make_error_code(std::errc::message_size));
  EXPECT_EQ(reader.read_all(10'000), text);
  EXPECT_EQ(reader.read_all(0), "");
}

RT_TEST(BufferedReader, SaysWhatTheStreamSays) {
  auto [one, other] = MemoryStream::pair();
  BufferedReader reader(*one);
  other->write("no end");
  one->set_deadline(std::chrono::seconds(0));
  std::error_code error;
  (void)reader.read_line(100, error);
  EXPECT_EQ(error, std::errc::timed_out);
  one->set_deadline(Stream::TimePoint::max());
  other->write("ing\n");
  EXPECT_EQ(reader.read_line(), "no ending");  // what had come was kept
}

RT_TEST(BufferedReader, SaysWithoutThrowingWhatWasWrongAndHowMuchThereWas) {
  auto stream = stream_of("abc", 2);
  BufferedReader reader(*stream);
  std::error_code error;
  EXPECT_EQ(reader.read_until("", 10, error), std::nullopt);
  EXPECT_EQ(error, std::errc::invalid_argument);
  std::byte buffer[10];
  EXPECT_EQ(reader.read_exact(std::span(buffer), error), 3u);
  EXPECT_EQ(error, StreamErrc::end_of_stream);
  EXPECT_EQ(text_of(std::span(buffer).first(3)), "abc");
}

RT_TEST(BufferedReader, EndsWithAContextAndLosesNothing) {
  support::TcpPair pair = support::tcp_pair();
  BufferedReader reader(pair.server);
  pair.client.write("li");
  ASSERT_EQ(reader.peek(2).size(), 2u);
  Context context = Context::background().with_cancel();
  WaitGroup waiting;
  waiting.go([&] {
    EXPECT_EQ(error_of([&] { (void)reader.read_line(context); }), std::errc::operation_canceled);
  });
  EXPECT_TRUE(support::waiting(1));
  context.cancel();
  waiting.wait();
  std::error_code error;
  EXPECT_EQ(reader.read_until(";", 100, context, error), std::nullopt);
  EXPECT_EQ(error, context.err());
  pair.client.write("ne\npiece;rest");
  EXPECT_EQ(reader.read_line(Context::background()), "line");
  EXPECT_EQ(reader.read_until(";", Context::background()), "piece;");
  std::byte buffer[10];
  EXPECT_GE(reader.read(std::span(buffer), Context::background()), 1u);
}

RT_TEST(BufferedWriter, WritesManySmallPiecesAtOnce) {
  auto [one, other] = MemoryStream::pair();
  BufferedWriter writer(*one, 100);
  for (int i = 0; i < 20; ++i) writer.write("12345");
  EXPECT_EQ(one->writes(), 0);
  EXPECT_EQ(writer.buffered(), 100U);
  writer.write(std::string(1000, 'x'));  // with what was there
  EXPECT_EQ(one->writes(), 1);
  EXPECT_EQ(writer.buffered(), 0U);
  writer.write("end");
  writer.flush();
  writer.flush();
  EXPECT_EQ(one->writes(), 2);
  one->shutdown_write();
  EXPECT_EQ(support::read_all(*other).size(), 1103U);
}

RT_TEST(BufferedWriter, WritesTheRestWhenItIsDestroyed) {
  auto [one, other] = MemoryStream::pair();
  { BufferedWriter(*one).write("all of it"); }
  EXPECT_EQ(support::read_text(*other, 9), "all of it");
}

RT_TEST(BufferedWriter, FailsForGoodAndItsDestructorDoesNotThrow) {
  auto [one, other] = MemoryStream::pair();
  other->close();
  {
    BufferedWriter writer(*one);
    writer.write("x");
    std::error_code error;
    writer.flush(error);
    EXPECT_EQ(error, std::errc::broken_pipe);
    int writes = one->writes();
    EXPECT_EQ(error_of([&] { writer.write("y"); }), std::make_error_code(std::errc::broken_pipe));
    EXPECT_EQ(error_of([&] { writer.flush(); }), std::make_error_code(std::errc::broken_pipe));
    EXPECT_EQ(one->writes(), writes);
  }
  BufferedWriter(*one).write("nobody reads this");
}

}  // namespace
}  // namespace magpie::net
