// errors_test.cc: what went wrong is told, by an exception or by an error_code, and names what it
// is about.

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <string>
#include <system_error>
#include <thread>

#include "support/net_test.h"

namespace magpie::net {
namespace {

using namespace std::chrono_literals;
using support::read_text;
using support::tcp_pair;

// What the exception says, after "magpie: ".
template <class F>
std::string text_of(F f) {
  try {
    f();
  } catch (const std::exception& error) {
    std::string text = error.what();
    return text.starts_with("magpie: ") ? text.substr(8) : "no prefix: " + text;
  }
  return "nothing was thrown";
}

std::string nobody() { return TcpListener::bind("127.0.0.1:0").local_address().to_string(); }

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

std::string temporary(const char* name) {
  return testing::TempDir() + "magpie-errors-" + std::to_string(getpid()) + name;
}

// ---- names

RT_TEST(ErrorText, OfConnectNamesThePeer) {
  std::string address = nobody();
  EXPECT_EQ(text_of([&] { TcpConn::connect(address); }),
            "connect to " + address + ": Connection refused");
  std::string port = address.substr(address.find(':'));
  EXPECT_EQ(text_of([&] {
              TcpConn::connect("localhost" + port);
            }).find("connect to localhost" + port + " ("),
            0u);
  EXPECT_EQ(text_of([&] { UnixConn::connect("/no/such/socket"); }),
            "connect to /no/such/socket: No such file or directory");
}

RT_TEST(ErrorText, OfBindNamesTheAddress) {
  TcpListener first = TcpListener::bind("127.0.0.1:0");
  std::string address = first.local_address().to_string();
  EXPECT_EQ(text_of([&] { TcpListener::bind(address); }),
            "bind to " + address + ": Address already in use");
  UdpSocket udp = UdpSocket::bind("127.0.0.1:0");
  address = udp.local_address().to_string();
  EXPECT_EQ(text_of([&] { UdpSocket::bind(address); }),
            "bind to " + address + ": Address already in use");
  EXPECT_EQ(text_of([] { UnixListener::bind("/no/such/folder/x"); }),
            "bind to /no/such/folder/x: No such file or directory");
}

RT_TEST(ErrorText, OfReadingAndWritingNamesThePeerAlsoAfterAReset) {
  auto [client, server] = tcp_pair();
  std::string peer = server.remote_address().to_string();
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ASSERT_EQ(setsockopt(client.native_handle(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
  client.close();
  std::byte byte;
  EXPECT_EQ(text_of([&s = server, &byte] {
              s.read({&byte, 1});
            }),
            "read from " + peer + ": Connection reset by peer");
  EXPECT_EQ(text_of([&s = server] { s.write("x"); }), "write to " + peer + ": Broken pipe");
}

RT_TEST(ErrorText, OfFilesAndNamesSaysWhichOne) {
  EXPECT_EQ(text_of([] { read_file("/no/such/file"); }),
            "read /no/such/file: No such file or directory");
  EXPECT_EQ(text_of([] { write_file("/no/such/file", ""); }),
            "write /no/such/file: No such file or directory");
  EXPECT_EQ(text_of([] { resolve("no-such-host.invalid"); }).find("resolve no-such-host.invalid: "),
            0u);
  EXPECT_EQ(text_of([] { wait_readable(-1); }), "wait for descriptor -1: Bad file descriptor");
}

RT_TEST(ErrorText, OfAcceptAfterCloseIsThatItWasCanceled) {
  TcpListener listener = TcpListener::bind("127.0.0.1:0");
  listener.close();
  EXPECT_EQ(text_of([&] { listener.accept(); }), "accept: Operation canceled");
}

// ---- error codes

RT_TEST(ErrorCode, OfShutdownWriteAfterCloseIsOperationCanceled) {
  auto [client, server] = tcp_pair();
  client.close();
  EXPECT_EQ(support::error_of([&c = client] { c.shutdown_write(); }),
            std::errc::operation_canceled);
  std::error_code error;
  client.shutdown_write(error);
  EXPECT_EQ(error, std::errc::operation_canceled);
}

RT_TEST(ErrorCode, StreamsSayItWithoutThrowing) {
  auto [client, server] = tcp_pair();
  std::error_code error = std::make_error_code(std::errc::bad_message);
  EXPECT_EQ(client.write("hello", error), 5u);
  EXPECT_FALSE(error);  // is cleared
  std::array<std::byte, 5> five;
  EXPECT_EQ(server.read_exact(five, error), 5u);
  EXPECT_FALSE(error);
  client.write("ab");
  server.wait_readable(error);
  EXPECT_FALSE(error);
  client.shutdown_write(error);
  EXPECT_FALSE(error);
  EXPECT_EQ(server.read_exact(five, error), 2u);  // what there was
  EXPECT_EQ(error, StreamErrc::end_of_stream);
  EXPECT_EQ(server.read(five, error), 0u);
  EXPECT_FALSE(error);
  server.set_deadline(-1s);
  EXPECT_EQ(server.read(five, error), 0u);
  EXPECT_EQ(error, std::errc::timed_out);
  EXPECT_EQ(server.write("x", error), 0u);
  EXPECT_EQ(error, std::errc::timed_out);
  server.close();
  EXPECT_EQ(server.read(five, error), 0u);
  EXPECT_EQ(error, std::errc::operation_canceled);
  server.local_address(error);
  EXPECT_EQ(error, std::errc::bad_file_descriptor);
}

RT_TEST(ErrorCode, AWriteThatIsCutOffSaysHowMuchWasWritten) {
  auto [client, server] = tcp_pair();
  std::string much(30'000'000, 'x');
  std::error_code error;
  std::size_t written = 0;
  WaitGroup writer;
  writer.go([&, &c = client] { written = c.write(much, error); });
  ASSERT_TRUE(support::waiting(1));
  client.set_write_deadline(std::chrono::steady_clock::now());
  writer.wait();
  EXPECT_EQ(error, std::errc::timed_out);
  EXPECT_GT(written, 0u);
  EXPECT_LT(written, much.size());
  client.close();
  EXPECT_EQ(support::read_all(server).size(), written);
}

RT_TEST(ErrorCode, ConnectAndBindSayItWithoutThrowing) {
  std::error_code error;
  TcpConn conn = TcpConn::connect(nobody(), error);
  EXPECT_EQ(error, std::errc::connection_refused);
  EXPECT_FALSE(conn.is_open());
  TcpConn::connect("no port", error);
  EXPECT_EQ(error, std::errc::invalid_argument);
  TcpConn::connect("no-such-host.invalid:80", error);
  EXPECT_EQ(error.category(), resolver_errors());

  TcpListener listener = TcpListener::bind("127.0.0.1:0", error);
  EXPECT_FALSE(error);
  TcpListener second = TcpListener::bind(listener.local_address().to_string(), error);
  EXPECT_EQ(error, std::errc::address_in_use);
  EXPECT_FALSE(second.is_open());
  TcpListener::bind("1.2.3.4.5:x", error);
  EXPECT_EQ(error, std::errc::invalid_argument);

  conn = TcpConn::connect(listener.local_address().to_string(), 1min, error);
  EXPECT_FALSE(error);
  EXPECT_TRUE(conn.is_open());
  EXPECT_TRUE(listener.accept(error).is_open());
  EXPECT_FALSE(error);
  listener.set_deadline(std::chrono::steady_clock::now());
  EXPECT_FALSE(listener.accept(error).is_open());
  EXPECT_EQ(error, std::errc::timed_out);
}

RT_TEST(ErrorCode, UnixSocketsSayItWithoutThrowing) {
  std::error_code error;
  std::string path = temporary("-socket");
  UnixConn::connect(path, error);
  EXPECT_EQ(error, std::errc::no_such_file_or_directory);
  UnixConn::connect("", error);
  EXPECT_EQ(error, std::errc::invalid_argument);
  UnixListener listener = UnixListener::bind(path, error);
  EXPECT_FALSE(error);
  UnixListener::bind(path, error);
  EXPECT_EQ(error, std::errc::address_in_use);
  UnixConn client = UnixConn::connect(path, error);
  EXPECT_FALSE(error);
  UnixConn server = listener.accept(error);
  EXPECT_FALSE(error);
  client.write("x", error);
  EXPECT_EQ(read_text(server, 1), "x");
  listener.close();
  listener.accept(error);
  EXPECT_EQ(error, std::errc::operation_canceled);
}

RT_TEST(ErrorCode, DatagramsSayItWithoutThrowing) {
  std::error_code error;
  UdpSocket here = UdpSocket::bind("127.0.0.1:0", error);
  EXPECT_FALSE(error);
  UdpSocket::bind(here.local_address().to_string(), error);
  EXPECT_EQ(error, std::errc::address_in_use);
  UdpSocket there = UdpSocket::connect(here.local_address().to_string(), error);
  EXPECT_FALSE(error);
  there.send(bytes_of("one"), error);
  EXPECT_FALSE(error);
  std::array<std::byte, 10> buffer;
  UdpSocket::Received got = here.receive_from(buffer, error);
  EXPECT_FALSE(error);
  EXPECT_EQ(got.bytes, 3u);
  here.send_to(std::span(buffer).first(3), got.from, error);
  EXPECT_FALSE(error);
  EXPECT_EQ(there.receive(buffer, error), 3u);
  here.set_read_deadline(std::chrono::steady_clock::now());
  here.receive_from(buffer, error);
  EXPECT_EQ(error, std::errc::timed_out);
  here.close();
  here.receive_from(buffer, error);
  EXPECT_EQ(error, std::errc::operation_canceled);
}

RT_TEST(ErrorCode, FilesNamesAndDescriptorsSayItWithoutThrowing) {
  std::error_code error;
  EXPECT_EQ(read_file("/no/such/file", error), "");
  EXPECT_EQ(error, std::errc::no_such_file_or_directory);
  std::string path = temporary("-file");
  write_file(path, "contents", error);
  EXPECT_FALSE(error);
  EXPECT_EQ(read_file(path, error), "contents");
  EXPECT_FALSE(error);
  unlink(path.c_str());
  EXPECT_TRUE(resolve("no-such-host.invalid", error).empty());
  EXPECT_EQ(error.category(), resolver_errors());
  EXPECT_FALSE(resolve("localhost", error).empty());
  EXPECT_FALSE(error);
  wait_readable(-1, error);
  EXPECT_EQ(error, std::errc::bad_file_descriptor);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  EXPECT_FALSE(wait_readable(ends[0], std::chrono::steady_clock::now() + 1ms, error));
  EXPECT_FALSE(error);
  EXPECT_TRUE(wait_writable(ends[1], std::chrono::steady_clock::now() + 1min, error));
  close(ends[0]);
  close(ends[1]);
}

// Not a crash.
RT_TEST(ErrorCode, OfWhatIsEmptyIsBadFileDescriptor) {
  std::error_code error;
  std::byte byte;
  TcpConn conn;
  EXPECT_EQ(conn.read({&byte, 1}, error), 0u);
  EXPECT_EQ(error, std::errc::bad_file_descriptor);
  conn.write("x", error);
  EXPECT_EQ(error, std::errc::bad_file_descriptor);
  EXPECT_THROW(conn.write("x"), std::system_error);
  conn.set_keep_alive(1s, error);
  EXPECT_EQ(error, std::errc::bad_file_descriptor);
  conn.set_deadline(1s);
  conn.close();
  TcpListener listener;
  listener.accept(error);
  EXPECT_EQ(error, std::errc::bad_file_descriptor);
  UdpSocket udp;
  udp.receive({&byte, 1}, error);
  EXPECT_EQ(error, std::errc::bad_file_descriptor);
  UnixListener unix_listener;
  unix_listener.local_address(error);
  EXPECT_EQ(error, std::errc::bad_file_descriptor);
}

// ---- datagrams

RT_TEST(UdpSocket, SaysWhetherADatagramWasTruncated) {
  UdpSocket here = UdpSocket::bind("127.0.0.1:0");
  UdpSocket there = UdpSocket::connect(here.local_address().to_string());
  std::array<std::byte, 10> buffer;
  there.send(bytes_of(std::string(1000, 'x')));
  UdpSocket::Received got = here.receive_from(buffer);
  EXPECT_EQ(got.bytes, 10u);
  EXPECT_TRUE(got.truncated);
  there.send(bytes_of("0123456789"));
  got = here.receive_from(buffer);
  EXPECT_EQ(got.bytes, 10u);
  EXPECT_FALSE(got.truncated);
}

}  // namespace
}  // namespace magpie::net
