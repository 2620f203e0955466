// run_until_test.cc: a server that serves until the process gets a signal.
#include <magpie/http.h>
#include <magpie/magpie.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>

#include "support/rt_test.h"

namespace magpie::http {
namespace {

using namespace std::chrono_literals;
using support::eventually;

// SIGUSR1 may come after the Signals of its test have ended. No thread of the runtime gets it:
// ThreadSanitizer would keep it for the goroutine that it interrupts, until that one makes a call
// that it knows.
bool prepare_signal() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  return std::signal(SIGUSR1, SIG_IGN) != SIG_ERR && pthread_sigmask(SIG_BLOCK, &set, nullptr) == 0;
}
const bool signal_is_prepared = prepare_signal();

// Serves "/wait", whose handler waits until it is let go, or its context is over, or for good.
class Site {
 public:
  enum class Handler { polite, stubborn };
  explicit Site(Handler handler) {
    server.handle("GET /wait", [this, handler](Request& req, Response& res) {
      busy = true;
      Context context = handler == Handler::polite ? req.context() : Context::background();
      Chan<void> cancelled = context.done();
      select(on_recv(let_go), on_recv(cancelled, [this] { was_cancelled = true; }));
      has_ended = true;
      res.send("done");
    });
    server.listen("127.0.0.1:0");
  }

  // Until a handler is busy with it.
  void ask() {
    asking = spawn([this] {
      Client client;
      try {
        return client.get("http://" + server.local_address().to_string() + "/wait").body;
      } catch (const std::exception&) {
        return std::string("cut off");
      }
    });
    ASSERT_TRUE(eventually([this] { return busy.load(); }));
  }

  Server server;
  Chan<void> let_go;
  std::atomic<bool> busy{false}, was_cancelled{false}, has_ended{false};
  std::optional<JoinHandle<std::string>> asking;
};

RT_TEST(RunUntil, ASignalLetsRequestsUnderWayFinish) {
  ASSERT_TRUE(signal_is_prepared);
  Signals signals({SIGUSR1});
  Site site(Site::Handler::polite);
  JoinHandle<bool> running = spawn([&] { return site.server.run_until(signals, 1h); });
  site.ask();
  const std::string address = site.server.local_address().to_string();
  kill(getpid(), SIGUSR1);
  // Nobody is accepted any more.
  ASSERT_TRUE(eventually([&] {
    try {
      (void)net::TcpConn::connect(address);
      return false;
    } catch (const std::system_error&) {
      return true;
    }
  }));
  site.let_go.close();
  EXPECT_TRUE(running.join());
  EXPECT_EQ(site.asking->join(), "done");
}

RT_TEST(RunUntil, ASecondSignalCutsThemOff) {
  Signals signals({SIGUSR1});
  Site site(Site::Handler::polite);
  JoinHandle<bool> running = spawn([&] { return site.server.run_until(signals, 1h); });
  site.ask();
  // Two that come together are one: so again and again.
  std::atomic<bool> over{false};
  JoinHandle<void> more = spawn([&] {
    while (!over.load()) {
      kill(getpid(), SIGUSR1);
      sleep_for(5ms);
    }
  });
  (void)running.join();  // long before the grace is over; within a second or not, as load has it
  over = true;
  more.join();
  EXPECT_TRUE(eventually([&] { return site.was_cancelled.load(); }));
  (void)site.asking->join();  // it may have answered before it was cut off
}

RT_TEST(RunUntil, AfterASecondSignalTheGraceIsOverAlsoIfAHandlerDoesNotEnd) {
  Signals signals({SIGUSR1});
  Site site(Site::Handler::stubborn);
  JoinHandle<bool> running = spawn([&] { return site.server.run_until(signals, 1h); });
  site.ask();
  std::atomic<bool> over{false};
  JoinHandle<void> more = spawn([&] {
    while (!over.load()) {
      kill(getpid(), SIGUSR1);
      sleep_for(5ms);
    }
  });
  EXPECT_FALSE(running.join());
  over = true;
  more.join();
  EXPECT_FALSE(site.server.shutdown(1h));  // returns at once, and so does the destructor
  site.let_go.close();
  EXPECT_EQ(site.asking->join(), "cut off");
  ASSERT_TRUE(eventually([&] { return site.has_ended.load(); }));  // it uses the site
}

RT_TEST(RunUntil, AnotherShutdownMayEndTheGrace) {
  Site site(Site::Handler::stubborn);
  JoinHandle<void> serving = spawn([&] { site.server.serve(); });
  site.ask();
  JoinHandle<bool> patient = spawn([&] { return site.server.shutdown(1h); });
  const std::string address = site.server.local_address().to_string();
  ASSERT_TRUE(eventually([&] {
    std::error_code error;
    (void)net::TcpConn::connect(address, error);
    return bool(error);
  }));
  EXPECT_FALSE(site.server.shutdown(0s));
  EXPECT_FALSE(patient.join());
  serving.join();
  site.let_go.close();
  EXPECT_EQ(site.asking->join(), "cut off");
  ASSERT_TRUE(eventually([&] { return site.has_ended.load(); }));
}

RT_TEST(RunUntil, AHandlerThatDoesNotEndIsLeftBehind) {
  Signals signals({SIGUSR1});
  Site site(Site::Handler::stubborn);
  JoinHandle<bool> running = spawn([&] { return site.server.run_until(signals, 1ms); });
  site.ask();
  kill(getpid(), SIGUSR1);
  EXPECT_FALSE(running.join());
  site.let_go.close();
  EXPECT_EQ(site.asking->join(), "cut off");
  ASSERT_TRUE(eventually([&] { return site.has_ended.load(); }));  // it uses the site
}

RT_TEST(RunUntil, TheEndOfAContextLetsRequestsUnderWayFinish) {
  Context context = Context::background().with_cancel();
  Site site(Site::Handler::polite);
  JoinHandle<bool> running = spawn([&] { return site.server.run_until(context, 1h); });
  site.ask();
  const std::string address = site.server.local_address().to_string();
  context.cancel();
  ASSERT_TRUE(eventually([&] {
    std::error_code error;
    (void)net::TcpConn::connect(address, error);
    return bool(error);
  }));
  EXPECT_FALSE(site.was_cancelled.load());
  site.let_go.close();
  EXPECT_TRUE(running.join());
  EXPECT_EQ(site.asking->join(), "done");
}

RT_TEST(RunUntil, AfterAContextAndTheGraceRequestsAreCutOff) {
  Context context = Context::background().with_cancel();
  Site site(Site::Handler::polite);
  JoinHandle<bool> running = spawn([&] { return site.server.run_until(context, 1ms); });
  site.ask();
  context.cancel();
  (void)running.join();  // within a second or not, as load has it
  EXPECT_TRUE(eventually([&] { return site.has_ended.load(); }));
  EXPECT_TRUE(site.was_cancelled.load());
  (void)site.asking->join();
}

RT_TEST(RunUntil, AContextThatIsOverEndsItAtOnce) {
  Context context = Context::background().with_cancel();
  context.cancel();
  Site site(Site::Handler::polite);
  EXPECT_TRUE(site.server.run_until(context, 1h));
  Server without_listener;
  EXPECT_THROW(without_listener.run_until(context), std::logic_error);
}

RT_TEST(RunUntil, WithAContextItReturnsAfterShutdownToo) {
  Context context = Context::background().with_cancel();
  Site site(Site::Handler::polite);
  JoinHandle<bool> running = spawn([&] { return site.server.run_until(context, 1h); });
  site.ask();
  site.let_go.close();
  EXPECT_EQ(site.asking->join(), "done");
  EXPECT_TRUE(site.server.shutdown(1h));
  EXPECT_TRUE(running.join());
}

RT_TEST(RunUntil, ReturnsAfterShutdownAndThrowsAsServe) {
  std::optional<Signals> signals(std::in_place, std::initializer_list<int>{SIGUSR1});
  Site site(Site::Handler::polite);
  JoinHandle<bool> running = spawn([&] { return site.server.run_until(*signals, 1h); });
  site.ask();
  signals.reset();  // no signal will come
  site.let_go.close();
  EXPECT_EQ(site.asking->join(), "done");
  EXPECT_TRUE(site.server.shutdown(1h));
  EXPECT_TRUE(running.join());

  Server without_listener;
  Signals others({SIGUSR1});
  EXPECT_THROW(without_listener.run_until(others), std::logic_error);
}

}  // namespace
}  // namespace magpie::http
