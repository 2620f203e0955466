// signals_test.cc: signals of the process in channels.
#include <gtest/gtest.h>
#include <magpie/magpie.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "support/forked_child.h"
#include "support/let_signals_in.h"
#include "support/rt_test.h"

namespace magpie {
namespace {

using support::eventually;

void send_to_self(int signal) { kill(getpid(), signal); }

// What a signal does while this lives.
class Disposition {
 public:
  Disposition(int signal, void (*handler)(int)) : signal_(signal) {
    struct sigaction action = {};
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART | SA_ONSTACK;
    sigaction(signal, &action, &before_);
  }
  ~Disposition() { sigaction(signal_, &before_, nullptr); }
  Disposition(const Disposition&) = delete;
  Disposition& operator=(const Disposition&) = delete;

  static void (*of(int signal))(int) {
    struct sigaction now = {};
    sigaction(signal, nullptr, &now);
    return now.sa_handler;
  }

 private:
  const int signal_;
  struct sigaction before_;
};

// Between tests: one may come, or be sent on, after its Signals have ended.
const Disposition usually(SIGUSR1, SIG_IGN);

RT_TEST(Signals, ArriveInTheChannel) {
  Signals signals({SIGUSR1, SIGUSR2});
  send_to_self(SIGUSR2);
  EXPECT_EQ(signals.channel().recv(), SIGUSR2);
  send_to_self(SIGUSR1);
  EXPECT_EQ(signals.channel().recv(), SIGUSR1);
}

RT_TEST(Signals, OfTheSameKindAreSentToEachWhoAsked) {
  Signals one({SIGUSR1}), two({SIGUSR2, SIGUSR1});
  std::optional<Signals> three = signal_channel({SIGUSR1});
  send_to_self(SIGUSR1);
  EXPECT_EQ(one.channel().recv(), SIGUSR1);
  EXPECT_EQ(two.channel().recv(), SIGUSR1);
  EXPECT_EQ(three->channel().recv(), SIGUSR1);
  three.reset();
  send_to_self(SIGUSR1);
  EXPECT_EQ(one.channel().recv(), SIGUSR1);
  EXPECT_EQ(two.channel().recv(), SIGUSR1);
}

TEST(Signals, ArriveBeforeBetweenAndAfterRuns) {
  Signals signals({SIGUSR1});
  for (int i = 0; i < 2; ++i) {
    send_to_self(SIGUSR1);
    EXPECT_EQ(signals.channel().recv(), SIGUSR1);  // a plain thread
    send_to_self(SIGUSR1);
    run(Options{.procs = 2}, [&] { EXPECT_EQ(signals.channel().recv(), SIGUSR1); });
  }
  send_to_self(SIGUSR1);
  EXPECT_EQ(signals.channel().recv(), SIGUSR1);
}

RT_TEST(Signals, OfEachKindOneIsKeptUntilItIsReceived) {
  Signals signals({SIGUSR1, SIGUSR2});
  const Chan<int>& channel = signals.channel();
  send_to_self(SIGUSR1);
  ASSERT_TRUE(eventually([&] { return channel.size() == 1; }));
  for (int i = 0; i < 10; ++i) send_to_self(SIGUSR1);
  send_to_self(SIGUSR2);
  ASSERT_TRUE(eventually([&] { return channel.size() == 2; }));
  EXPECT_EQ(channel.recv(), SIGUSR1);
  EXPECT_EQ(channel.recv(), SIGUSR2);
}

TEST(Signals, DoWhatTheyDidBeforeWhenTheLastOneEnds) {
  {
    Signals one({SIGUSR1});
    EXPECT_NE(Disposition::of(SIGUSR1), SIG_IGN);
    { Signals two({SIGUSR1}); }
    EXPECT_NE(Disposition::of(SIGUSR1), SIG_IGN);
    Signals moved = std::move(one);
    EXPECT_NE(Disposition::of(SIGUSR1), SIG_IGN);
  }
  EXPECT_EQ(Disposition::of(SIGUSR1), SIG_IGN);
}

std::atomic<int> handled{0};

// It comes at any moment of the end.
TEST(Signals, ThatComeAtTheEndAreReceivedOrDoWhatTheyDidBefore) {
  Disposition counted(SIGUSR1, [](int) { handled.fetch_add(1, std::memory_order_relaxed); });
  handled = 0;
  int received = 0;
  for (int i = 1; i <= 200; ++i) {
    std::optional<Signals> signals(std::in_place, std::initializer_list<int>{SIGUSR1});
    Chan<int> channel = signals->channel();
    std::thread sender([] { send_to_self(SIGUSR1); });
    if (i % 2 == 0) std::this_thread::yield();
    signals.reset();
    sender.join();
    if (channel.recv()) ++received;  // closed: does not block
    ASSERT_TRUE(eventually([&] {
      support::let_signals_in();
      return received + handled.load() == i;
    })) << received
        << " + " << handled.load();
  }
}

TEST(Signals, ThatCannotBeHadAreRefused) {
  for (int signal : {0, -1, 65, 1000, SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP,
                     SIGSYS, SIGURG, 32, 33}) {
    EXPECT_THROW(Signals({SIGUSR1, signal}), std::invalid_argument) << signal;
  }
  EXPECT_THROW(Signals(std::initializer_list<int>{}), std::invalid_argument);
  EXPECT_EQ(Disposition::of(SIGUSR1), SIG_IGN);
  run(Options{.preempt_signal = SIGUSR2},
      [] { EXPECT_THROW(Signals({SIGUSR2}), std::invalid_argument); });
}

RT_TEST(Signals, AreReceivedWhileAllPsCompute) {
  Signals signals({SIGUSR1});
  std::atomic<bool> stop{false};
  std::atomic<int> looping{0};
  WaitGroup hogs;
  for (int i = 0; i < procs() + 1; ++i) {
    hogs.go([&] {
      ++looping;
      support::spin_until(stop);
    });
  }
  ASSERT_TRUE(eventually([&] { return looping.load() == procs() + 1; }));
  send_to_self(SIGUSR1);
  EXPECT_EQ(signals.channel().recv(), SIGUSR1);
  stop = true;
  hogs.wait();
}

TEST(Signals, AreReceivedByProgramsThatBlockThemEverywhere) {
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  run(Options{.procs = 2}, [] {
    Signals signals({SIGUSR1});
    send_to_self(SIGUSR1);
    EXPECT_EQ(signals.channel().recv(), SIGUSR1);
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// The alarm is the only thing that can wake anybody.
TEST(Signals, AreWaitedForWithoutADeadlock) {
  for (int procs : {1, 2, 8}) {
    Signals signals({SIGALRM});
    run(Options{.procs = procs}, [&] {
      itimerval once{{0, 0}, {0, 30'000}};
      setitimer(ITIMER_REAL, &once, nullptr);
      int got = 0;
      Chan<int> other;
      select(on_recv(signals.channel(), [&](std::optional<int> one) { got = *one; }),
             on_recv(other));
      EXPECT_EQ(got, SIGALRM);
    });
  }
}

RT_TEST(Signals, CloseTheirChannelAtTheEnd) {
  std::optional<Signals> signals(std::in_place, std::initializer_list<int>{SIGUSR1});
  std::atomic<std::size_t> received{0};
  JoinHandle<void> until_closed = spawn([&received, channel = signals->channel()] {
    for (int one : channel) received += one == SIGUSR1 ? 1 : 0;
  });
  send_to_self(SIGUSR1);
  // Not sooner: a signal that finds nobody who wants it ends the process, as it did before.
  ASSERT_TRUE(eventually([&] { return received == 1; }));
  signals.reset();
  until_closed.join();
  EXPECT_EQ(received, 1U);
}

TEST(Signals, AreNotThoseOfTheChildOfAFork) {
  Signals signals({SIGUSR2});
  pid_t child = fork();
  if (child == 0) {
    if (Disposition::of(SIGUSR2) != SIG_DFL) _exit(1);
    send_to_self(SIGUSR2);
    _exit(2);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR2) << status;
  EXPECT_EQ(signals.channel().size(), 0U);
}

// A process that has had none yet, in which one thread asks for them while another forks.
int ask_for_the_first_while_forking() {
  std::atomic<bool> is_forking{false};
  std::thread first([&] {
    while (!is_forking) std::this_thread::yield();
    Signals signals({SIGUSR2});
  });
  is_forking = true;
  int failed = 0;
  for (int i = 0; i < 5; ++i) {
    pid_t child = fork();
    if (child == 0) {
      alarm(20);  // of one that stands still
      Signals signals({SIGUSR2});
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    failed += status == 0 ? 0 : 1;
  }
  first.join();
  return failed;
}

TEST(Signals, MayBeHadInTheChildOfAForkWhoeverAskedForThemFirst) {
  if (const char* trouble = support::trouble_of_forked_child()) GTEST_SKIP() << trouble;
  for (int i = 0; i < 40 && !HasFailure(); ++i) {
    pid_t child = fork();
    if (child == 0) _exit(ask_for_the_first_while_forking());
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
}

// It is sent before the child has done anything, or while it is being born.
TEST(Signals, ThatAreSentToANewbornChildOfAForkEndIt) {
  Signals signals({SIGUSR2});
  for (int i = 0; i < 20; ++i) {
    pid_t child = fork();
    if (child == 0) {
      sigset_t none;
      sigemptyset(&none);
      alarm(20);  // of a child that the signal did not reach
      for (;;) sigsuspend(&none);
    }
    kill(child, SIGUSR2);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR2) << status;
  }
  EXPECT_EQ(signals.channel().size(), 0U);
}

TEST(Signals, AreBlockedAfterAForkAsTheyWereBefore) {
  Signals signals({SIGUSR2});
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  auto are_right = [&] {
    sigset_t now;
    pthread_sigmask(SIG_SETMASK, nullptr, &now);
    return sigismember(&now, SIGUSR1) == 1 && sigismember(&now, SIGUSR2) == 0 &&
           sigismember(&now, SIGTERM) == sigismember(&before, SIGTERM);
  };
  pid_t child = fork();
  if (child == 0) _exit(are_right() ? 0 : 1);
  EXPECT_TRUE(are_right());
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// One that has seen that nobody wants the signal any more may go on at any later time.
TEST(Signals, AreNotTakenFromWhoeverCameSinceByALateHandler) {
  Disposition by_default(SIGUSR2, SIG_DFL);
  struct sigaction late = {};
  {
    Signals signals({SIGUSR2});
    sigaction(SIGUSR2, nullptr, &late);
  }
  Disposition counted(SIGUSR2, [](int) { handled.fetch_add(1, std::memory_order_relaxed); });
  handled = 0;
  late.sa_sigaction(SIGUSR2, nullptr, nullptr);
  ASSERT_NE(Disposition::of(SIGUSR2), SIG_DFL);
  EXPECT_TRUE(eventually([] {
    support::let_signals_in();
    return handled.load() == 1;
  }));
}

// As somebody does who saved it and comes to an end later. SIGWINCH: by default nothing happens.
TEST(Signals, DoWhatTheyDidBeforeAlsoIfTheHandlerIsPutBackAfterTheEnd) {
  Disposition by_default(SIGWINCH, SIG_DFL);
  struct sigaction saved = {};
  {
    Signals signals({SIGWINCH});
    sigaction(SIGWINCH, nullptr, &saved);
  }
  sigaction(SIGWINCH, &saved, nullptr);
  send_to_self(SIGWINCH);
  EXPECT_TRUE(eventually([] {
    support::let_signals_in();
    return Disposition::of(SIGWINCH) == SIG_DFL;
  }));
}

TEST(Signals, MayComeAndGoOnManyThreadsAtOnce) {
  std::atomic<bool> stop{false};
  std::thread sender([&] {
    while (!stop.load()) {
      send_to_self(SIGUSR1);
      std::this_thread::yield();
    }
  });
  run(Options{.procs = 4}, [] {
    WaitGroup group;
    for (int i = 0; i < 8; ++i) {
      group.go([] {
        for (int round = 0; round < 50; ++round) {
          Signals signals({SIGUSR1, SIGUSR2});
          EXPECT_EQ(signals.channel().recv(), SIGUSR1);
        }
      });
    }
    group.wait();
  });
  stop = true;
  sender.join();
  EXPECT_EQ(Disposition::of(SIGUSR1), SIG_IGN);
}

}  // namespace
}  // namespace magpie
