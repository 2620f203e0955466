// process_test.cc: child processes.
#include <fcntl.h>
#include <magpie/magpie.h>
#include <magpie/net.h>
#include <magpie/process.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/sanitizer.h"
#include "support/net_test.h"

namespace magpie {
namespace {

using namespace std::chrono_literals;
using net::BufferedReader;
using support::eventually;
using support::read_all;

Process sh(std::string script, ProcessOptions options = {}) {
  return Process::spawn({"sh", "-c", std::move(script)}, std::move(options));
}

// Descriptors above the three that are not closed on exec.
int count_inheritable() {
  int count = 0;
  for (int fd = 3; fd < 1000; ++fd) {
    int flags = fcntl(fd, F_GETFD);
    if (flags >= 0 && (flags & FD_CLOEXEC) == 0) ++count;
  }
  return count;
}
const int inherited = count_inheritable();  // by this program

bool has_children() { return waitpid(-1, nullptr, WNOHANG) >= 0 || errno != ECHILD; }

RT_TEST(Process, TellsHowItEnded) {
  EXPECT_TRUE(sh("exit 0").wait().success());
  ExitStatus seven = sh("exit 7").wait();
  EXPECT_EQ(seven.code(), 7);
  EXPECT_FALSE(seven.success());
  EXPECT_EQ(seven.to_string(), "exit code 7");
  ExitStatus killed = sh("kill -9 $$").wait();
  EXPECT_EQ(killed.signal(), SIGKILL);
  EXPECT_EQ(killed.code(), -1);
  EXPECT_EQ(killed.to_string(), "signal 9 (Killed)");
}

RT_TEST(Process, HasStreams) {
  Process cat = Process::spawn({"cat"}, {.input = Stdio::pipe(), .output = Stdio::pipe()});
  cat.input().write("there and back");
  cat.input().close();
  EXPECT_EQ(read_all(cat.output()), "there and back");
  EXPECT_TRUE(cat.wait().success());
  std::byte one[1];
  EXPECT_EQ(support::error_of([&] { (void)cat.error().read(one); }),
            std::make_error_code(std::errc::bad_file_descriptor));
}

RT_TEST(Process, MayWriteMoreThanAPipeHoldsToBothItsOutputs) {
  Process child = sh("head -c 300000 /dev/zero; cat >&2; head -c 300000 /dev/zero >&2",
                     {.input = Stdio::pipe(), .output = Stdio::pipe(), .error = Stdio::pipe()});
  Process::Output all = child.communicate(std::string(200'000, 'i'));
  EXPECT_TRUE(all.status.success());
  EXPECT_EQ(all.output.size(), 300'000U);
  EXPECT_EQ(all.error.size(), 500'000U);
}

RT_TEST(Process, ThatSaysTooMuchIsKilled) {
  Process child = sh("exec yes", {.output = Stdio::pipe()});
  std::error_code error;
  (void)child.communicate({}, 100'000, error);
  EXPECT_EQ(error, std::errc::message_size);
  EXPECT_EQ(child.wait().signal(), SIGKILL);
}

// It would wait for ever for somebody to read, and the reader of its output for it.
RT_TEST(Process, ThatSaysTooMuchOnItsErrorIsKilled) {
  Process child = sh("head -c 300000 /dev/zero >&2; exec sleep 1000",
                     {.input = Stdio::pipe(), .output = Stdio::pipe(), .error = Stdio::pipe()});
  std::error_code error;
  (void)child.communicate(std::string(300'000, 'i'), 1000, error);
  EXPECT_EQ(error, std::errc::message_size);
  EXPECT_EQ(child.wait().signal(), SIGKILL);
}

RT_TEST(Process, IsKilledWhenTheContextOfACommunicationIsOver) {
  Context context = Context::background().with_cancel();
  Process child = sh("echo ready >&2; exec sleep 1000",
                     {.input = Stdio::pipe(), .output = Stdio::pipe(), .error = Stdio::pipe()});
  std::error_code error;
  JoinHandle<void> talk =
      spawn([&] { (void)child.communicate(std::string(300'000, 'i'), 1000, context, error); });
  context.cancel();
  talk.join();
  EXPECT_EQ(error, context.err());
  EXPECT_EQ(child.wait().signal(), SIGKILL);

  Process cat = Process::spawn({"cat"}, {.input = Stdio::pipe(), .output = Stdio::pipe()});
  Context unhurried = Context::background().with_timeout(1h);
  EXPECT_EQ(cat.communicate("in time", 1000, unhurried).output, "in time");
}

RT_TEST(Process, ThatDoesNotExistIsAnErrorThatNamesIt) {
  try {
    (void)Process::spawn({"no-such-program-here", "x"});
    FAIL();
  } catch (const std::system_error& error) {
    EXPECT_EQ(error.code(), std::errc::no_such_file_or_directory);
    EXPECT_NE(std::string(error.what()).find("no-such-program-here"), std::string::npos);
  }
  try {
    (void)Process::spawn({"true"}, {.directory = "/no/such/folder"});
    FAIL();
  } catch (const std::system_error& error) {
    EXPECT_NE(std::string(error.what()).find("/no/such/folder"), std::string::npos);
  }
  std::error_code error;
  Process none = Process::spawn({"/"}, {}, error);
  EXPECT_EQ(error, std::errc::permission_denied);
  EXPECT_THROW((void)none.wait(), std::logic_error);
  EXPECT_THROW((void)Process::spawn({}), std::invalid_argument);
  EXPECT_THROW((void)Process::spawn({"echo", std::string("a\0b", 3)}), std::invalid_argument);
  EXPECT_THROW((void)Process::spawn({"true"}, {.directory = std::string("/\0x", 3)}),
               std::invalid_argument);
  (void)Process::spawn({}, {}, error);
  EXPECT_EQ(error, std::errc::invalid_argument);
  (void)Process::spawn({"true"}, {.output = Stdio::to_output()}, error);
  EXPECT_EQ(error, std::errc::invalid_argument);
  EXPECT_FALSE(has_children());
}

RT_TEST(Process, HasTheEnvironmentAndDirectoryItIsGiven) {
  Process child = sh(
      "echo $A-$HOME; pwd",
      {.output = Stdio::pipe(), .environment = {{"A=1", "PATH=/bin:/usr/bin"}}, .directory = "/"});
  EXPECT_EQ(read_all(child.output()), "1-\n/\n");
  EXPECT_TRUE(child.wait().success());
}

RT_TEST(Process, HasTheDescriptorsItIsGivenAndNoOthers) {
  net::Pipe ends = net::pipe();
  Process child = sh("echo out; echo err >&2; ls /proc/self/fd | wc -l",
                     {.input = Stdio::null(),
                      .output = Stdio::descriptor(ends.writer.native_handle()),
                      .error = Stdio::to_output()});
  ends.writer.close();
  std::string text = read_all(ends.reader);
  EXPECT_EQ(text.substr(0, 8), "out\nerr\n");
  // The three, the folder that is listed, and what whoever started the tests has left open.
  EXPECT_EQ(std::atoi(text.c_str() + 8), 4 + inherited) << text;
  EXPECT_TRUE(child.wait().success());
}

RT_TEST(Process, BeginsWithNoSignalsBlockedOrPipesIgnored) {
  Process child = sh("grep -E '^Sig(Blk|Ign)' /proc/self/status", {.output = Stdio::pipe()});
  std::string text = read_all(child.output());
  EXPECT_NE(text.find("SigBlk:\t0000000000000000"), std::string::npos) << text;
  std::size_t at = text.find("SigIgn:\t");
  ASSERT_NE(at, std::string::npos);
  unsigned long long ignored = std::stoull(text.substr(at + 8, 16), nullptr, 16);
  EXPECT_EQ(ignored & (1ULL << (SIGPIPE - 1)), 0U);
  EXPECT_TRUE(child.wait().success());
}

RT_TEST(Process, IsWaitedForByManyAtOnce) {
  Process child = sh("read line; exit 3", {.input = Stdio::pipe()});
  std::atomic<int> right{0};
  WaitGroup group;
  for (int i = 0; i < 20; ++i) group.go([&] { right += child.wait().code() == 3 ? 1 : 0; });
  std::thread plain([&] { right += child.wait().code() == 3 ? 1 : 0; });
  EXPECT_EQ(child.try_wait(), std::nullopt);
  EXPECT_EQ(child.wait_for(1ms), std::nullopt);
  child.input().close();
  group.wait();
  blocking([&] { plain.join(); });
  EXPECT_EQ(right.load(), 21);
  std::error_code error;
  EXPECT_EQ(child.try_wait(error), ExitStatus::of_code(3));
  EXPECT_EQ(child.wait_for(1h, error), ExitStatus::of_code(3));
  EXPECT_EQ(child.wait_or_kill(Context::background(), 1s, error), ExitStatus::of_code(3));
  EXPECT_FALSE(error);
}

RT_TEST(Process, IsLeftAloneOrKilledWhenAContextIsOver) {
  Process child = sh("exec sleep 1000");
  Context context = Context::background().with_timeout(1ms);
  EXPECT_EQ(support::error_of([&] { (void)child.wait(context); }),
            std::make_error_code(std::errc::timed_out));
  std::error_code error;
  (void)child.wait(context, error);
  EXPECT_EQ(error, std::errc::timed_out);
  EXPECT_EQ(child.try_wait(), std::nullopt);
  EXPECT_EQ(child.wait_or_kill(context, error).signal(), SIGKILL);
  EXPECT_FALSE(error);
  EXPECT_EQ(child.wait_or_kill(context).signal(), SIGKILL);
}

RT_TEST(Process, IsAskedToEndBeforeItIsKilled) {
  Process polite = sh("trap 'exit 5' TERM; echo ready; while :; do read line; done",
                      {.input = Stdio::pipe(), .output = Stdio::pipe(), .error = Stdio::null()});
  EXPECT_EQ(BufferedReader(polite.output()).read_line(), "ready");
  Context over = Context::background().with_cancel();
  over.cancel();
  JoinHandle<ExitStatus> ending = spawn([&] { return polite.wait_or_kill(over, 60s); });
  // The shell looks at its traps when it has read a line.
  ASSERT_TRUE(eventually([&] {
    std::error_code ignored;
    polite.input().write("\n", ignored);
    return polite.try_wait().has_value();
  }));
  EXPECT_EQ(ending.join().code(), 5);

  Process stubborn = sh("trap '' TERM; echo ready; exec sleep 1000", {.output = Stdio::pipe()});
  EXPECT_EQ(BufferedReader(stubborn.output()).read_line(), "ready");
  EXPECT_EQ(stubborn.wait_or_kill(over, 1ms).signal(), SIGKILL);
}

RT_TEST(Process, IsKilledByItsSignalAndNothingHappensToOneThatHasEnded) {
  Process child = sh("exec sleep 1000");
  child.kill(SIGTERM);
  EXPECT_EQ(child.wait().signal(), SIGTERM);
  child.kill();
  std::error_code error;
  sh("exec sleep 1000").kill(1000, error);
  EXPECT_EQ(error, std::errc::invalid_argument);
}

RT_TEST(Process, DoesNotOutliveItsObject) {
  pid_t id;
  {
    Process child = sh("exec sleep 1000");
    id = child.id();
    Process moved = std::move(child);
    EXPECT_EQ(moved.id(), id);
    child = sh("exec sleep 1000");
    moved = std::move(child);  // the first one ends here
    EXPECT_EQ(kill(id, 0), -1);
    id = moved.id();
  }
  EXPECT_EQ(kill(id, 0), -1);
  EXPECT_FALSE(has_children());
}

RT_TEST(Process, ThatIsDetachedRunsOnAndIsReaped) {
  Process child = sh("read line", {.input = Stdio::pipe()});
  pid_t id = child.id();
  child.detach();
  EXPECT_THROW((void)child.wait(), std::logic_error);
  EXPECT_EQ(kill(id, 0), 0);
  child.input().close();
  EXPECT_TRUE(eventually([&] { return kill(id, 0) != 0; }));
}

RT_TEST(Process, RunsBesideAHundredOthers) {
  std::atomic<int> right{0};
  WaitGroup group;
  for (int i = 0; i < 100; ++i) {
    group.go([&, i] {
      const std::string text = std::to_string(i);
      Process child = Process::spawn({"cat"}, {.input = Stdio::pipe(), .output = Stdio::pipe()});
      Process::Output all = child.communicate(text);
      right += all.output == text && all.status.success() ? 1 : 0;
    });
  }
  group.wait();
  EXPECT_EQ(right.load(), 100);
  EXPECT_FALSE(has_children());
}

int count_pidfds() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (std::filesystem::read_symlink(entry.path(), gone).string().find("[pidfd]") !=
        std::string::npos)
      ++count;
  }
  return count;
}

RT_TEST(Process, ThatHasEndedKeepsNoDescriptor) {
  const int before = count_pidfds();
  Process child = sh("read line; exit 0", {.input = Stdio::pipe()});
  EXPECT_EQ(count_pidfds(), before + 1);
  child.input().close();
  EXPECT_TRUE(child.wait().success());
  EXPECT_TRUE(eventually([&] { return count_pidfds() == before; }));
}

int status_of(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

TEST(Process, OfTheParentIsLeftAloneInTheChildOfAFork) {
  Process process = Process::spawn({"sleep", "1000"});
  pid_t child = fork();
  if (child == 0) {
    std::error_code error;
    (void)process.wait(error);
    if (error != std::errc::no_child_process) _exit(1);
    process.kill(SIGKILL, error);
    if (error != std::errc::no_child_process) _exit(2);
    process = Process();
    _exit(0);
  }
  EXPECT_EQ(status_of(child), 0);
  EXPECT_EQ(process.try_wait(), std::nullopt);
}

// Others hold the locks of the list and of their children for most of the time.
TEST(Process, MayBeSpawnedInTheChildOfAForkWhateverOthersDid) {
  std::vector<Process> many;
  for (int i = 0; i < 50; ++i) many.push_back(Process::spawn({"sleep", "1000"}));
  std::atomic<bool> stop{false};
  std::vector<std::thread> others;
  for (int i = 0; i < 2; ++i) {
    others.emplace_back([&] {
      std::error_code ignored;
      while (!stop.load())
        (void)Process::spawn({"/"}, {}, ignored);  // looks for orphans, and fails
    });
  }
  for (int i = 0; i < 40 && !HasFailure(); ++i) {
    pid_t child = fork();
    if (child == 0) {
      alarm(20);  // of one that stands still
      _exit(Process::spawn({"true"}).wait().success() ? 0 : 1);
    }
    EXPECT_EQ(status_of(child), 0);
  }
  stop = true;
  for (std::thread& one : others) one.join();
}

#if !defined(MAGPIE_ASAN)  // what the goroutines that run() drops have is never freed
TEST(Process, MayOutliveARun) {
  Process child;
  run([&] { child = sh("read line; exit 4", {.input = Stdio::pipe()}); });
  EXPECT_EQ(child.try_wait(), std::nullopt);
  run([&] {
    JoinHandle<ExitStatus> status = spawn([&] { return child.wait(); });
    child.input().close();
    EXPECT_EQ(status.join().code(), 4);
  });
  Process second;
  run([&] { second = sh("exit 6"); });
  EXPECT_EQ(second.wait().code(), 6);
  Process third = Process::spawn({"true"});  // without any
  EXPECT_TRUE(third.wait().success());
}

TEST(Process, ThatOutlivesARunKeepsNoDescriptorWhenItHasEnded) {
  const int before = count_pidfds();
  for (bool in_another : {false, true}) {
    Process child;
    run([&] {
      child = sh("read line", {.input = Stdio::pipe()});
      sleep_for(2ms);  // its reaper waits by now, most likely, and is dropped
    });
    child.input().close();
    if (in_another) {
      run([&] { child.wait(); });
    } else {
      child.wait();
    }
    EXPECT_TRUE(eventually([&] { return count_pidfds() == before; })) << in_another;
  }
}

// run() ends at any moment of it.
TEST(Process, IsReapedByTheNextIfItsGoroutineWasDroppedWhileItSpawned) {
  for (int i = 0; i < 40; ++i) {
    run([&] {
      for (int k = 0; k < 3; ++k) go([] { (void)Process::spawn({"true"}).wait(); });
      sleep_for(std::chrono::microseconds(i * 30));
    });
  }
  EXPECT_TRUE(eventually([] {
    Process::spawn({"true"}).wait();
    siginfo_t left;
    return waitid(P_ALL, 0, &left, WEXITED | WNOHANG | WNOWAIT) != 0 && errno == ECHILD;
  }));
}

TEST(Process, IsReapedByTheNextIfItsGoroutineWasDropped) {
  std::atomic<pid_t> id{0};
  run([&] {
    go([&] {
      Process child = sh("exec sleep 1000");
      id = child.id();
      (void)Chan<int>::nil().recv();
    });
    ASSERT_TRUE(eventually([&] { return id.load() != 0; }));
  });
  EXPECT_EQ(kill(id, SIGKILL), 0);
  ASSERT_TRUE(eventually([&] {
    Process::spawn({"true"}).wait();
    return kill(id, 0) != 0;
  }));
}
#endif

}  // namespace
}  // namespace magpie
