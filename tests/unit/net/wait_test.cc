// wait_test.cc: waiting for other people's descriptors, and limits that are given as durations.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <system_error>

#include "support/net_test.h"

namespace magpie::net {
namespace {

using namespace std::chrono_literals;
using support::error_of;

RT_TEST(WaitReadable, FailsWithAContextThatIsOverAlsoIfThereIsSomethingToRead) {
  int ready = eventfd(1, EFD_CLOEXEC);
  Context context = Context::background().with_cancel();
  context.cancel();
  std::error_code error;
  wait_readable(ready, context, error);
  EXPECT_EQ(error, context.err());
  wait_writable(ready, context, error);
  EXPECT_EQ(error, context.err());
  close(ready);
}

RT_TEST(WaitReadable, FindsARegularFileReady) {
  int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  std::error_code error;
  wait_readable(file, error);
  EXPECT_FALSE(error) << error.message();
  close(file);
}

RT_TEST(WaitReadable, TakesADuration) {
  int event = eventfd(0, EFD_CLOEXEC);
  std::error_code error;
  EXPECT_FALSE(wait_readable(event, 1ms));
  EXPECT_FALSE(wait_readable(event, 1ms, error));
  EXPECT_FALSE(error) << error.message();
  EXPECT_TRUE(wait_writable(event, 1h));
  EXPECT_TRUE(wait_writable(event, 1h, error));
  close(event);
}

RT_TEST(Deadlines, AreDurationsToo) {
  support::TcpPair pair = support::tcp_pair();
  std::array<std::byte, 10> buffer;
  pair.server.set_read_deadline(1ms);
  EXPECT_EQ(error_of([&] { (void)pair.server.read(buffer); }), std::errc::timed_out);
  pair.server.set_write_deadline(0ms);
  EXPECT_EQ(error_of([&] { pair.server.write("x"); }), std::errc::timed_out);
  TcpListener listener = TcpListener::bind("127.0.0.1:0");
  listener.set_deadline(1ms);
  EXPECT_EQ(error_of([&] { (void)listener.accept(); }), std::errc::timed_out);
  UdpSocket udp = UdpSocket::bind("127.0.0.1:0");
  udp.set_deadline(1ms);
  EXPECT_EQ(error_of([&] { (void)udp.receive(buffer); }), std::errc::timed_out);
  udp.set_deadline(std::chrono::steady_clock::now());
  EXPECT_EQ(error_of([&] { udp.send_to(buffer, udp.local_address()); }), std::errc::timed_out);
  udp.set_write_deadline(1h);
  udp.send_to(buffer, udp.local_address());
  udp.set_read_deadline(1h);
  EXPECT_EQ(udp.receive(buffer), buffer.size());
}

}  // namespace
}  // namespace magpie::net
