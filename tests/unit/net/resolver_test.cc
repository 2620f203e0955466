// resolver_test.cc: looking up names takes no longer than the caller wants to wait, whatever
// getaddrinfo does.
//
// This program's getaddrinfo holds on to names that end in ".slow.test" until the test opens its
// gate.

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "support/forked_child.h"
#include "support/net_test.h"
#include "support/os_faults.h"

namespace {

// Threads wait here, not goroutines.
class Gate {
 public:
  void enter() {
    std::unique_lock hold(lock_);
    ++calls_;
    most_ = std::max(most_, ++inside_);
    opened_.wait(hold, [this] { return open_; });
    --inside_;
  }
  void close() {
    std::lock_guard hold(lock_);
    open_ = false;
    calls_ = most_ = 0;
  }
  void open() {
    std::lock_guard hold(lock_);
    open_ = true;
    opened_.notify_all();
  }
  int calls() const {
    std::lock_guard hold(lock_);
    return calls_;
  }
  int inside() const {
    std::lock_guard hold(lock_);
    return inside_;
  }
  int most() const {
    std::lock_guard hold(lock_);
    return most_;
  }

 private:
  mutable std::mutex lock_;
  std::condition_variable opened_;
  bool open_ = true;
  int inside_ = 0, calls_ = 0, most_ = 0;
};

Gate gate;

}  // namespace

extern "C" int getaddrinfo(const char* host, const char* service, const addrinfo* hints,
                           addrinfo** result) {
  using Function = int (*)(const char*, const char*, const addrinfo*, addrinfo**);
  static const auto real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "getaddrinfo"));
  if (host != nullptr && std::string_view(host).ends_with(".slow.test")) {
    gate.enter();
    return real("127.0.0.1", service, hints, result);
  }
  return real(host, service, hints, result);
}

namespace magpie::net {
namespace {

using namespace std::chrono_literals;
using support::error_of;

// Closed while it lives; then those inside are let go.
struct ClosedGate {
  ClosedGate() { gate.close(); }
  ~ClosedGate() { open(); }
  void open() {
    gate.open();
    EXPECT_TRUE(support::eventually([] { return gate.inside() == 0; }));
  }
};

// One that nobody has asked for: the answer to an earlier question may be on its way.
std::string new_name() {
  static int last = 0;
  return "new" + std::to_string(++last) + ".slow.test";
}

RT_TEST(Resolve, EndsWhenItsTimeIsUp) {
  ClosedGate closed;
  const std::string name = new_name();
  EXPECT_EQ(error_of([&] { resolve(name, 10ms); }), std::errc::timed_out);
  std::error_code error;
  EXPECT_TRUE(resolve(name, 10ms, error).empty());
  EXPECT_EQ(error, std::errc::timed_out);
}

RT_TEST(Resolve, EndsWithItsContext) {
  ClosedGate closed;
  const std::string name = new_name();
  Context context = Context::background().with_cancel();
  WaitGroup waiter;
  waiter.go([&] {
    EXPECT_EQ(error_of([&] { resolve(name, context); }), std::errc::operation_canceled);
    EXPECT_EQ(error_of([&] { TcpConn::connect(name + ":80", context); }),
              std::errc::operation_canceled);
  });
  ASSERT_TRUE(support::waiting(1));
  context.cancel();
  waiter.wait();
  EXPECT_EQ(error_of([&] { resolve(name, Context::background().with_timeout(5ms)); }),
            std::errc::timed_out);
}

RT_TEST(Resolve, CountsAgainstTheTimeOfConnect) {
  ClosedGate closed;
  EXPECT_EQ(error_of([] { TcpConn::connect(new_name() + ":80", 10ms); }), std::errc::timed_out);
}

RT_TEST(Resolve, ReturnsWhatTheSystemSaysLater) {
  ClosedGate closed;
  WaitGroup waiter;
  waiter.go(
      [name = new_name()] { EXPECT_EQ(resolve(name, 1h).front().to_string(), "127.0.0.1:0"); });
  ASSERT_TRUE(support::waiting(1));
  closed.open();
  waiter.wait();
}

RT_TEST(Resolve, UsesFewThreadsForManyNames) {
  constexpr int kNames = 200, kMostThreads = 32;
  ClosedGate closed;
  WaitGroup all;
  std::atomic<int> timed_out = 0, found = 0;
  for (int i = 0; i < kNames; ++i) {
    all.go([&, i, name = new_name()] {
      std::error_code error;
      if (i % 2 == 0) {
        resolve(name, 20ms, error);
        if (error == std::errc::timed_out) ++timed_out;
      } else {
        if (!resolve(name, error).empty()) ++found;
      }
    });
  }
  ASSERT_TRUE(support::eventually([&] { return timed_out == kNames / 2; }));
  EXPECT_TRUE(support::eventually([] { return gate.inside() == kMostThreads; }));
  closed.open();
  all.wait();
  EXPECT_EQ(found, kNames / 2);
  EXPECT_EQ(gate.most(), kMostThreads);
  EXPECT_LT(gate.calls(), kNames);  // nobody asked for those that had given up in line
}

RT_TEST(Resolve, ForgetsNamesThatNobodyWaitsForWhileOthersAreInLine) {
  constexpr int kInLine = 40, kGivenUp = 20'000;
  constexpr std::size_t kMost = 2'000'000;  // each name takes some hundred bytes
  ClosedGate closed;
  WaitGroup all;
  for (int i = 0; i < kInLine; ++i) all.go([name = new_name()] { (void)resolve(name); });
  ASSERT_TRUE(support::waiting(kInLine));
  const std::size_t before = mallinfo2().uordblks;
  std::error_code error;
  for (int i = 0; i < kGivenUp; ++i) (void)resolve(std::string(200, 'x') + new_name(), 0s, error);
  EXPECT_EQ(error, std::errc::timed_out);
  EXPECT_LT(mallinfo2().uordblks, before + kMost);
  closed.open();
  all.wait();
}

RT_TEST(Resolve, AsksOnceForANameThatManyWantAtATime) {
  ClosedGate closed;
  WaitGroup all;
  const std::string name = new_name();
  std::atomic<int> found = 0;
  for (int i = 0; i < 20; ++i) {
    all.go([&] {
      if (!resolve(name).empty()) ++found;
    });
  }
  ASSERT_TRUE(support::waiting(20));
  closed.open();
  all.wait();
  EXPECT_EQ(found, 20);
  EXPECT_EQ(gate.calls(), 1);
}

// The thread that looks it up goes on alone.
TEST(Resolve, DoesNotKeepRunFromEnding) {
  ClosedGate closed;
  run([] {
    Context context = Context::background().with_cancel();
    JoinHandle<void> waiter = spawn([&] {
      std::error_code error;
      resolve("f.slow.test", context, error);
    });
    EXPECT_TRUE(support::eventually([] { return gate.inside() == 1; }));
    context.cancel();
    waiter.join();
  });
  EXPECT_EQ(gate.inside(), 1);
}

TEST(Resolve, WorksOnPlainThreadsWithoutARuntime) {
  ClosedGate closed;
  EXPECT_EQ(error_of([] { resolve("g.slow.test", 10ms); }), std::errc::timed_out);
  Context context = Context::background().with_cancel();
  std::thread waiter([&] {
    EXPECT_EQ(error_of([&] { resolve("g.slow.test", context); }), std::errc::operation_canceled);
  });
  context.cancel();
  waiter.join();
  closed.open();
  EXPECT_FALSE(resolve("g.slow.test").empty());
}

// The threads that would answer are the parent's.
TEST(Resolve, WorksInTheChildOfAForkForANameThatTheParentAsksFor) {
  if (const char* trouble = support::trouble_of_forked_child()) GTEST_SKIP() << trouble;
  ClosedGate closed;
  EXPECT_EQ(error_of([] { resolve("h.slow.test", 1ms); }), std::errc::timed_out);
  std::thread parent([] { EXPECT_FALSE(resolve("h.slow.test").empty()); });
  EXPECT_TRUE(support::eventually([] { return gate.inside() == 1; }));
  pid_t child = fork();
  if (child == 0) {
    new (&gate) Gate;  // open, and nobody inside
    std::error_code error;
    bool found = !resolve("h.slow.test", 60s, error).empty();
    _exit(found ? 0 : 1);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  closed.open();
  parent.join();
}

// ---- another resolver

struct FixedResolver final : Resolver {
  std::vector<Address> look_up(const std::string& host, TimePoint, const Context*,
                               std::error_code& error) override {
    if (host == "fixed.test") return {Address::parse("127.0.0.1:0")};
    error = std::make_error_code(std::errc::host_unreachable);
    return {};
  }
};

RT_TEST(Resolver, IsAskedForNamesAndNotForNumbers) {
  set_resolver(std::make_shared<FixedResolver>());
  EXPECT_EQ(resolve("fixed.test").front().to_string(), "127.0.0.1:0");
  EXPECT_EQ(resolve("::1").front().to_string(), "[::1]:0");
  EXPECT_EQ(error_of([] { TcpConn::connect("localhost:80"); }), std::errc::host_unreachable);
  TcpListener listener = TcpListener::bind("fixed.test:0");
  EXPECT_EQ(listener.local_address().host(), "127.0.0.1");
  set_resolver(nullptr);
  EXPECT_FALSE(resolve("localhost").empty());
}

// Others have the lock for much of the time.
TEST(Resolver, MayBeReplacedInTheChildOfAForkWhateverOthersDid) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> others;
  for (int i = 0; i < 2; ++i) {
    others.emplace_back([&] {
      while (!stop.load()) set_resolver(nullptr);
    });
  }
  for (int i = 0; i < 100 && !testing::Test::HasFailure(); ++i) {
    pid_t child = fork();
    if (child == 0) {
      alarm(20);  // of one that stands still
      set_resolver(nullptr);
      _exit(resolve("127.0.0.1").size() == 1 ? 0 : 1);
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  stop = true;
  for (std::thread& one : others) one.join();
}

RT_TEST(Resolve, RefusesANameWithAZeroByte) {
  using namespace std::string_literals;
  EXPECT_EQ(error_of([] { (void)resolve("localhost\0.test"s); }), std::errc::invalid_argument);
}

// As it would have to ask in place, for as long as that takes.
RT_TEST(Resolve, EndsWhenItsTimeIsUpAlsoWithoutThreads) {
  support::ThreadFaults no_threads;
  ClosedGate closed;
  EXPECT_EQ(error_of([] { (void)resolve(new_name(), 30ms); }), std::errc::timed_out);
  Context context = Context::background().with_timeout(30ms);
  EXPECT_EQ(error_of([&] { (void)resolve(new_name(), context); }), std::errc::timed_out);
  EXPECT_EQ(gate.calls(), 0);
}

RT_TEST(Resolve, WithoutThreadsAndALimitDoesItsOwnQuestionAlone) {
  ClosedGate closed;
  support::ThreadFaults no_threads;
  std::string name = new_name();
  WaitGroup limited;
  Context context = Context::background().with_cancel();
  limited.go([&] {
    std::error_code error;
    (void)resolve(name, context, error);
    EXPECT_EQ(error, context.err());
  });
  EXPECT_TRUE(support::waiting(1));
  EXPECT_FALSE(resolve("localhost").empty());  // while the other is in line
  EXPECT_EQ(gate.calls(), 0);
  context.cancel();
  limited.wait();
}

// Two addresses: nobody listens at the first, and the second never answers, as its line is full.
struct RefusedThenSilent final : Resolver {
  RefusedThenSilent() {
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    Address any = Address::parse("127.0.0.2:0");
    EXPECT_EQ(bind(listener, any.data(), any.size()), 0);
    EXPECT_EQ(listen(listener, 0), 0);
    sockaddr_in at{};
    socklen_t size = sizeof at;
    EXPECT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&at), &size), 0);
    port = std::to_string(ntohs(at.sin_port));
    for (int& client : clients) {
      client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
      (void)connect(client, reinterpret_cast<sockaddr*>(&at), size);
    }
  }
  ~RefusedThenSilent() override {
    for (int client : clients) close(client);
    close(listener);
  }
  std::vector<Address> look_up(const std::string&, TimePoint, const Context*,
                               std::error_code&) override {
    return {Address::parse("127.0.0.3:0"), Address::parse("127.0.0.2:0")};
  }

  int listener = -1;
  int clients[4];
  std::string port;
};

RT_TEST(Connect, ToSeveralAddressesSaysThatItsTimeWasUp) {
  auto resolver = std::make_shared<RefusedThenSilent>();
  set_resolver(resolver);
  std::string where = "two.test:" + resolver->port;
  EXPECT_EQ(error_of([&] { TcpConn::connect(where, 30ms); }), std::errc::timed_out);
  Context timed = Context::background().with_timeout(30ms);
  EXPECT_EQ(error_of([&] { TcpConn::connect(where, timed); }), std::errc::timed_out);
  Context cancelled = Context::background().with_cancel();
  WaitGroup canceller;
  canceller.go([&] {
    sleep_for(10ms);
    cancelled.cancel();
  });
  EXPECT_EQ(error_of([&] { TcpConn::connect(where, cancelled); }), std::errc::operation_canceled);
  canceller.wait();
  set_resolver(nullptr);
}

}  // namespace
}  // namespace magpie::net
