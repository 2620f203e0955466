// net_deadlines_test.cc: deadlines and close() reach those who wait, whenever they come.

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "support/net_test.h"

namespace magpie {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using support::error_of;
using support::read_text;
using support::tcp_pair;

std::optional<std::error_code> error_of_read(net::Stream& stream) {
  return error_of([&] {
    std::byte byte;
    stream.read({&byte, 1});
  });
}

RT_TEST(Deadline, ReadFailsWhenItHasPassed) {
  auto [client, server] = tcp_pair();
  auto deadline = steady_clock::now() + 10ms;
  server.set_read_deadline(deadline);
  EXPECT_EQ(error_of_read(server), std::errc::timed_out);
  EXPECT_GE(steady_clock::now(), deadline);
  EXPECT_EQ(error_of_read(server), std::errc::timed_out);  // and stays so
}

RT_TEST(Deadline, MayBeATimeOfAnyClock) {
  using std::chrono::system_clock;
  auto [client, server] = tcp_pair();
  auto deadline = system_clock::now() + 2ms;
  server.set_read_deadline(deadline);
  EXPECT_EQ(error_of_read(server), std::errc::timed_out);
  EXPECT_GE(system_clock::now() + 1ms, deadline);
  server.set_deadline(system_clock::time_point::max());
  client.set_write_deadline(system_clock::now() + 60s);
  client.write("x");
  EXPECT_EQ(read_text(server, 1), "x");

  net::TcpListener listener = net::TcpListener::bind("127.0.0.1:0");
  listener.set_deadline(system_clock::now() + 2ms);
  EXPECT_EQ(error_of([&] { listener.accept(); }), std::errc::timed_out);
  std::string address = listener.local_address().to_string();
  EXPECT_TRUE(net::TcpConn::connect(address, system_clock::now() + 60s).is_open());
  std::error_code error;
  EXPECT_FALSE(net::TcpConn::connect(address, steady_clock::now() - 1s, error).is_open());
  EXPECT_EQ(error, std::errc::timed_out);
  net::UdpSocket socket = net::UdpSocket::bind("127.0.0.1:0");
  socket.set_deadline(system_clock::now() + 2ms);
  std::byte byte;
  EXPECT_EQ(error_of([&] { socket.receive({&byte, 1}); }), std::errc::timed_out);
  EXPECT_FALSE(net::resolve("localhost", system_clock::now() + 60s).empty());

  int fd = eventfd(0, EFD_CLOEXEC);
  EXPECT_FALSE(net::wait_readable(fd, system_clock::now() + 2ms));
  EXPECT_FALSE(net::wait_readable(fd, system_clock::now() + 2ms, error));
  EXPECT_FALSE(error);
  EXPECT_TRUE(net::wait_writable(fd, system_clock::now() + 60s));
  close(fd);
}

RT_TEST(Deadline, InThePastFailsAtOnceEvenIfThereAreBytes) {
  auto [client, server] = tcp_pair();
  client.write("x");
  server.set_read_deadline(steady_clock::now() - 1s);
  EXPECT_EQ(error_of_read(server), std::errc::timed_out);
  server.set_read_deadline(steady_clock::time_point::max());
  EXPECT_EQ(read_text(server, 1), "x");
}

// A read that took all there was leaves the next one to wait for news, and a read that fails must
// not keep them to itself.
RT_TEST(Deadline, ThatHasPassedDoesNotHideWhatArrivedMeanwhile) {
  auto [client, server] = tcp_pair();
  JoinHandle<std::string> waits = spawn([&s = server] { return read_text(s, 1); });
  sleep_for(5ms);  // from its wait on there are news
  client.write("0");
  ASSERT_EQ(waits.join(), "0");
  for (int round = 0; round < 20; ++round) {
    client.write("1");
    std::byte more[2];
    ASSERT_EQ(server.read(more), 1U);
    client.write("2");
    sleep_for(1ms);  // the news arrive, most often
    server.set_read_deadline(steady_clock::now() - 1s);
    EXPECT_EQ(error_of_read(server), std::errc::timed_out);
    server.set_read_deadline(steady_clock::now() + 30s);
    ASSERT_EQ(read_text(server, 1), "2");
  }
}

RT_TEST(Deadline, OfReadingDoesNotStopWriting) {
  auto [client, server] = tcp_pair();
  server.set_read_deadline(steady_clock::now() - 1s);
  server.write("w");
  EXPECT_EQ(read_text(client, 1), "w");
}

RT_TEST(Deadline, StopsAWriterWhoWaits) {
  auto [client, server] = tcp_pair();
  client.set_write_deadline(steady_clock::now() + 20ms);
  std::string much(1'000'000, 'x');
  std::optional<std::error_code> error;
  while (!error) error = error_of([&c = client, &much] { c.write(much); });
  EXPECT_EQ(error, std::errc::timed_out);
}

RT_TEST(Deadline, SetWhileSomebodyWaitsReachesHim) {
  auto [client, server] = tcp_pair();
  std::optional<std::error_code> error;
  WaitGroup reader;
  reader.go([&] { error = error_of_read(server); });
  ASSERT_TRUE(support::waiting(1));
  server.set_deadline(5ms);
  reader.wait();
  EXPECT_EQ(error, std::errc::timed_out);
}

RT_TEST(Deadline, OfThePastSetWhileSomebodyWaitsReachesHim) {
  auto [client, server] = tcp_pair();
  std::optional<std::error_code> error;
  WaitGroup reader;
  reader.go([&] { error = error_of_read(server); });
  ASSERT_TRUE(support::waiting(1));
  server.set_read_deadline(steady_clock::now() - 1h);
  reader.wait();
  EXPECT_EQ(error, std::errc::timed_out);
}

RT_TEST(Deadline, MovedFurtherAwayLetsHimWaitOn) {
  auto [client, server] = tcp_pair();
  server.set_deadline(1s);  // a busy machine needs long to get to the next but one line
  WaitGroup reader;
  reader.go([&s = server] { EXPECT_EQ(read_text(s, 1), "x"); });
  ASSERT_TRUE(support::waiting(1));
  server.set_deadline(1h);
  sleep_for(1100ms);  // the first one has passed
  client.write("x");
  reader.wait();
}

RT_TEST(Deadline, MovedNearerStopsHim) {
  auto [client, server] = tcp_pair();
  server.set_deadline(1h);
  WaitGroup reader;
  reader.go([&s = server] { EXPECT_EQ(error_of_read(s), std::errc::timed_out); });
  ASSERT_TRUE(support::waiting(1));
  server.set_deadline(5ms);
  reader.wait();
}

RT_TEST(Deadline, TakenAwayLetsHimWaitOn) {
  auto [client, server] = tcp_pair();
  server.set_deadline(1s);  // a busy machine needs long to get to the next but one line
  WaitGroup reader;
  reader.go([&s = server] { EXPECT_EQ(read_text(s, 1), "x"); });
  ASSERT_TRUE(support::waiting(1));
  server.set_read_deadline(steady_clock::time_point::max());
  sleep_for(1100ms);
  client.write("x");
  reader.wait();
}

RT_TEST(Deadline, ReachesThoseWhoWaitForTheirTurn) {
  auto [client, server] = tcp_pair();
  WaitGroup readers;
  for (int i = 0; i < 5; ++i)
    readers.go([&s = server] { EXPECT_EQ(error_of_read(s), std::errc::timed_out); });
  ASSERT_TRUE(support::waiting(5));
  server.set_deadline(1ms);
  readers.wait();
}

RT_TEST(Deadline, OfAcceptAndConnect) {
  net::TcpListener listener = net::TcpListener::bind("127.0.0.1:0");
  listener.set_deadline(steady_clock::now() + 5ms);
  EXPECT_EQ(error_of([&] { listener.accept(); }), std::errc::timed_out);
  listener.set_deadline(steady_clock::time_point::max());
  auto client = spawn([a = listener.local_address().to_string()] {
    return net::TcpConn::connect(a, std::chrono::minutes(1));
  });
  listener.accept();
  client.join().close();
}

// Deadlines come while bytes do, and while they are moved.
RT_TEST(Deadline, ManyMovesWhileBytesFlow) {
  auto [client, server] = tcp_pair();
  std::atomic<bool> over = false;
  WaitGroup all;
  all.go([&] {
    for (int i = 0; !over; ++i) server.set_deadline(i % 3 == 0 ? 1h : i % 3 == 1 ? 2h : 30min);
  });
  all.go([&c = client] {
    for (int i = 0; i < 2000; ++i) {
      c.write("x");
      if (i % 16 == 0) yield();
    }
  });
  EXPECT_EQ(read_text(server, 2000), std::string(2000, 'x'));
  over = true;
  all.wait();
}

// ---- close

RT_TEST(Close, WakesAReaderWithOperationCanceled) {
  auto [client, server] = tcp_pair();
  WaitGroup reader;
  reader.go([&s = server] { EXPECT_EQ(error_of_read(s), std::errc::operation_canceled); });
  ASSERT_TRUE(support::waiting(1));
  server.close();
  reader.wait();
  EXPECT_EQ(error_of_read(server), std::errc::operation_canceled);
  EXPECT_EQ(server.native_handle(), -1);
  server.close();  // once more is nothing
}

RT_TEST(Close, WakesEverybodyOfBothSides) {
  auto [client, server] = tcp_pair();
  WaitGroup all;
  for (int i = 0; i < 4; ++i) {
    all.go([&s = server] { EXPECT_EQ(error_of_read(s), std::errc::operation_canceled); });
    all.go([&s = server] {
      std::string much(10'000'000, 'x');
      EXPECT_EQ(error_of([&] { s.write(much); }), std::errc::operation_canceled);
    });
  }
  ASSERT_TRUE(support::waiting(8));
  server.close();
  all.wait();
}

RT_TEST(Close, WakesAccept) {
  net::TcpListener listener = net::TcpListener::bind("127.0.0.1:0");
  WaitGroup acceptors;
  for (int i = 0; i < 3; ++i) {
    acceptors.go(
        [&] { EXPECT_EQ(error_of([&] { listener.accept(); }), std::errc::operation_canceled); });
  }
  ASSERT_TRUE(support::waiting(3));
  listener.close();
  acceptors.wait();
}

// The number is another file's right after it was given back: nobody may read from that.
RT_TEST(Close, ANumberIsNotReusedUnderAReader) {
  std::atomic<bool> over = false;
  std::atomic<int> wrong = 0;
  WaitGroup all;
  for (int k = 0; k < 3; ++k) {
    all.go([&] {
      while (!over) {
        auto [client, server] = tcp_pair();
        WaitGroup reader;
        reader.go([&s = server, &wrong] {
          try {
            while (true) {
              std::byte byte;
              if (s.read({&byte, 1}) == 0) break;
              if (byte != std::byte{'r'}) ++wrong;
            }
          } catch (const std::system_error&) {
          }
        });
        client.write("rr");
        server.close();
        auto [other_client, other_server] = tcp_pair();  // most likely with the same numbers
        other_client.write("wwww");
        reader.wait();
        EXPECT_EQ(read_text(other_server, 4), "wwww");
      }
    });
  }
  sleep_for(200ms);
  over = true;
  all.wait();
  EXPECT_EQ(wrong, 0);
}

// ---- descriptors of others

RT_TEST(WaitReadable, ReturnsWhenItCanBeReadAndNotBefore) {
  int event = eventfd(0, EFD_NONBLOCK);
  EXPECT_FALSE(net::wait_readable(event, steady_clock::now() + 5ms));
  net::wait_writable(event);
  WaitGroup waiters;
  std::atomic<int> woken = 0;
  for (int i = 0; i < 3; ++i) {  // several at once
    waiters.go([&] {
      net::wait_readable(event);
      ++woken;
    });
  }
  ASSERT_TRUE(support::waiting(3));
  EXPECT_EQ(woken, 0);
  std::uint64_t one = 1;
  ASSERT_EQ(write(event, &one, sizeof one), 8);
  waiters.wait();
  close(event);
}

RT_TEST(WaitReadable, SaysWhatCannotBeWaitedFor) {
  EXPECT_EQ(error_of([] { net::wait_readable(-1); }), std::errc::bad_file_descriptor);
}

// ---- plain threads

TEST(PlainThreads, MayUseConnectionsWhileARuntimeRuns) {
  for (int procs : {1, 2, 4}) {
    run(Options{.procs = procs}, [] {
      auto pair = tcp_pair();
      std::thread thread([&] {
        EXPECT_EQ(read_text(pair.server, 5), "hello");
        pair.server.write("thread");
        EXPECT_EQ(error_of_read(pair.server), std::errc::operation_canceled);
      });
      sleep_for(5ms);
      pair.client.write("hello");
      EXPECT_EQ(read_text(pair.client, 6), "thread");
      sleep_for(5ms);
      pair.server.close();
      blocking([&] { thread.join(); });
    });
  }
}

TEST(PlainThreads, AreToldThatNoRuntimeRuns) {
  net::TcpListener listener = net::TcpListener::bind("127.0.0.1:0");
  EXPECT_THROW(listener.accept(), std::logic_error);
}

TEST(SeveralRuns, ADeadlineThatWasSetBeforeARunHoldsInIt) {
  net::TcpListener listener = net::TcpListener::bind("127.0.0.1:0");
  for (int i = 0; i < 2; ++i) {
    listener.set_deadline(steady_clock::now() + 20ms);
    run([&] { EXPECT_EQ(error_of([&] { listener.accept(); }), std::errc::timed_out); });
  }
}

TEST(SeveralRuns, AListenerOutlivesARunAndThoseWhoWaitedInIt) {
  net::TcpListener listener = net::TcpListener::bind("127.0.0.1:0");
  std::string address = listener.local_address().to_string();
  for (int i = 0; i < 3; ++i) {
    run(Options{.procs = 2}, [&] {
      JoinHandle<net::TcpConn> client = spawn([&] { return net::TcpConn::connect(address); });
      listener.accept();
      client.join();
      go([&] { listener.accept(); });  // left behind
      EXPECT_TRUE(support::waiting(1));
    });
  }
}

}  // namespace
}  // namespace magpie
