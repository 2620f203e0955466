// net_scheduler_test.cc: the network and the scheduler: nobody is forgotten in the poller, whatever
// the others do.

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "support/net_test.h"

namespace magpie {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using support::error_of;
using support::read_text;
using support::tcp_pair;

// A client of the system's own, on a plain thread that does not know the runtime.
class RawClient {
 public:
  explicit RawClient(const net::Address& address)
      : fd_(socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    EXPECT_EQ(connect(fd_, address.data(), address.size()), 0);
  }
  ~RawClient() { close(fd_); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  bool round_trip() const {
    char byte = 'x';
    return ::send(fd_, &byte, 1, MSG_NOSIGNAL) == 1 && ::recv(fd_, &byte, 1, 0) == 1;
  }

 private:
  int fd_;
};

// Sends bytes back until the peer ends.
void echo(net::TcpConn& conn) {
  std::byte buffer[100];
  while (std::size_t count = conn.read(buffer)) conn.write(std::span(buffer, count));
}

class AtProcs : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Network, AtProcs, testing::Values(1, 2, 4),
                         [](const auto& at) { return std::to_string(at.param) + "Procs"; });

TEST_P(AtProcs, WaitingForAConnectionIsNoDeadlock) {
  run(Options{.procs = GetParam()}, [] {
    net::TcpListener listener = net::TcpListener::bind("127.0.0.1:0");
    listener.set_deadline(steady_clock::now() + 20ms);
    EXPECT_EQ(error_of([&] { listener.accept(); }), std::errc::timed_out);
    std::atomic<bool> connected = false;
    listener.set_deadline(steady_clock::time_point::max());
    std::thread client([&, address = listener.local_address()] {
      std::this_thread::sleep_for(20ms);
      RawClient raw(address);
      connected = true;
    });
    listener.accept();
    blocking([&] { client.join(); });
    EXPECT_TRUE(connected);
  });
}

// A connection is served `trips` times while so many goroutines do something else until they are
// told that it is over.
void serve_beside(int goroutines, void (*do_until)(const std::atomic<bool>& over), int trips) {
  net::TcpListener listener = net::TcpListener::bind("127.0.0.1:0");
  std::atomic<bool> over = false;
  WaitGroup all;
  all.go([&] {
    net::TcpConn conn = listener.accept();
    echo(conn);
  });
  for (int i = 0; i < goroutines; ++i) all.go([&over, do_until] { do_until(over); });
  std::thread client([&, address = listener.local_address()] {
    RawClient raw(address);
    for (int i = 0; i < trips; ++i) EXPECT_TRUE(raw.round_trip());
    over = true;
  });
  all.wait();
  blocking([&] { client.join(); });
}

// Every P is held by a loop that never calls anything: sysmon asks for events, and makes room for
// whom they wake.
TEST_P(AtProcs, LoopsOnEveryPDoNotKeepAConnectionFromBeingServed) {
  run(Options{.procs = GetParam()}, [] {
    auto loop = [](const std::atomic<bool>& over) {
      while (!over.load(std::memory_order_relaxed)) {
      }
    };
    serve_beside(procs() + 1, loop, 20);
  });
}

// Goroutines that always have something to do never come to rest: the network is looked at in
// between.
TEST_P(AtProcs, BusyGoroutinesDoNotKeepAConnectionFromBeingServed) {
  run(Options{.procs = GetParam()}, [] {
    auto yield_on = [](const std::atomic<bool>& over) {
      while (!over) yield();
    };
    serve_beside(4 * procs(), yield_on, 50);
  });
}

// The only thread sleeps in the poller, and no other can be made: it has to be woken there.
TEST_P(AtProcs, ASleeperInThePollerIsWokenForOtherWork) {
  run(Options{.procs = GetParam(), .max_threads = 1}, [] {
    net::TcpListener listener = net::TcpListener::bind("127.0.0.1:0");
    WaitGroup acceptor;
    acceptor.go(
        [&] { EXPECT_EQ(error_of([&] { listener.accept(); }), std::errc::operation_canceled); });
    for (int i = 0; i < 50; ++i) {
      Chan<int> from_thread;
      std::thread thread([&] {
        if (i % 2 == 0) std::this_thread::sleep_for(1ms);  // so that it sleeps, most often
        go([from_thread]() mutable { from_thread.send(7); });
      });
      EXPECT_EQ(from_thread.recv(), 7);
      thread.join();
    }
    listener.close();
    acceptor.wait();
  });
}

TEST_P(AtProcs, TimersFireWhileAThreadSleepsInThePoller) {
  run(Options{.procs = GetParam()}, [] {
    net::TcpListener listener = net::TcpListener::bind("127.0.0.1:0");
    WaitGroup all;
    all.go([&] { EXPECT_EQ(error_of([&] { listener.accept(); }), std::errc::operation_canceled); });
    for (int i = 0; i < 20; ++i) {
      all.go([i] {
        for (int k = 0; k < 10; ++k) sleep_for(std::chrono::microseconds(100 + 300 * i));
      });
    }
    sleep_for(50ms);
    listener.close();
    all.wait();
  });
}

// Of two goroutines one sleeps, the other waits for a connection and then loops until the first has
// slept. Returns whether both waited at the same time, before the connection was written to.
bool loop_beside_a_timer() {
  auto pair = tcp_pair();
  std::atomic<bool> fired = false;
  WaitGroup all;
  all.go([&] {
    sleep_for(100ms);
    fired = true;
  });
  all.go([&] {
    read_text(pair.server, 1);
    while (!fired.load(std::memory_order_relaxed)) {
    }
  });
  bool both = false;
  EXPECT_TRUE(support::eventually([&] {
    both = stats().waiting == 2;
    return both || fired;
  }));
  if (both) sleep_for(10ms);
  both = both && !fired;
  pair.client.write("x");
  all.wait();
  return both;
}

// The keeper of the timer duty is called to a goroutine that then loops: another M has to take the
// duty.
TEST(Network, ATimerFiresAlthoughWhoeverSleptUntilItWasCalledAway) {
  for (int procs : {2, 4}) {  // one of them is idle
    run(Options{.procs = procs}, [] { EXPECT_TRUE(support::eventually(loop_beside_a_timer)); });
  }
}

TEST_P(AtProcs, TheNumberOfProcsChangesWhileConnectionsWait) {
  run(Options{.procs = GetParam()}, [] {
    auto pair = tcp_pair();
    WaitGroup server;
    server.go([&] { echo(pair.server); });
    for (int i = 0; i < 30; ++i) {
      set_procs(1 + i % 4);
      pair.client.write("x");
      EXPECT_EQ(read_text(pair.client, 1), "x");
    }
    pair.client.close();
    server.wait();
  });
}

// A goroutine that is bound to its thread lets go of its P whenever it waits: somebody has to go to
// the poller for it.
TEST_P(AtProcs, AGoroutineWithAThreadLockWaitsForConnectionsToo) {
  run(Options{.procs = GetParam()}, [] {
    auto pair = tcp_pair();
    WaitGroup server;
    server.go([&] {
      ThreadLock lock;
      echo(pair.server);
    });
    ThreadLock lock;
    for (int i = 0; i < 20; ++i) {
      pair.client.write("x");
      EXPECT_EQ(read_text(pair.client, 1), "x");
    }
    pair.client.close();
    server.wait();
  });
}

TEST_P(AtProcs, RunEndsAlthoughGoroutinesWaitForConnections) {
  for (int i = 0; i < 20; ++i) {
    net::TcpListener listener = net::TcpListener::bind("127.0.0.1:0");
    run(Options{.procs = GetParam()}, [&] {
      for (int k = 0; k < 3; ++k) go([&] { listener.accept(); });
      if (i % 2 == 0) {
        EXPECT_TRUE(support::waiting(3));
      }
    });
  }
}

RT_TEST(NetworkStats, PollsAreCounted) {
  auto [client, server] = tcp_pair();
  // Sysmon may come first; it does not count.
  EXPECT_TRUE(support::eventually([&c = client, &s = server] {
    WaitGroup reader;
    reader.go([&s] { read_text(s, 1); });
    EXPECT_TRUE(support::waiting(1));
    c.write("x");
    reader.wait();
    return stats().total.polls > 0 && stats().total.polled > 0;
  }));
}

}  // namespace
}  // namespace magpie
