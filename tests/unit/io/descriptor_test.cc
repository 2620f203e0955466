#include "io/descriptor.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>

#include "base/clock.h"
#include "support/rt_test.h"

namespace magpie::io {
namespace {

struct Pipe {
  Pipe() {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
    from = std::make_unique<Descriptor>(ends[0], Descriptor::Kind::stream);
    to = std::make_unique<Descriptor>(ends[1], Descriptor::Kind::stream);
  }
  std::unique_ptr<Descriptor> from, to;
};

Outcome read_some(Descriptor& descriptor, std::span<std::byte> into, int* attempts = nullptr,
                  const Limit* limit = nullptr) {
  Descriptor::Operation operation(descriptor, descriptor.reader(), "read", limit);
  return operation.perform(
      [&](int fd) -> ssize_t {
        if (attempts != nullptr) ++*attempts;
        ssize_t count = ::read(fd, into.data(), into.size());
        return count < 0 ? -errno : count;
      },
      into.size());
}

void write_one(Descriptor& descriptor) {
  Descriptor::Operation operation(descriptor, descriptor.writer(), "write");
  (void)operation.perform([](int fd) -> ssize_t {
    ssize_t count = ::write(fd, "x", 1);
    return count < 0 ? -errno : count;
  });
}

RT_TEST(Descriptor, ItsDestructorWakesThoseInsideAndWaitsUntilTheyHaveLeft) {
  for (int i = 0; i < 20; ++i) {
    Pipe pipe;
    WaitGroup reader;
    bool left = false;
    reader.go([&] {
      std::byte byte;
      EXPECT_EQ(read_some(*pipe.from, {&byte, 1}).error, ECANCELED);
      left = true;
    });
    ASSERT_TRUE(support::eventually([] { return stats().waiting >= 1; }));
    Descriptor* going = pipe.from.get();
    delete going;
    (void)pipe.from.release();
    reader.wait();
    EXPECT_TRUE(left);
  }
}

// Edge-triggered: after a read that took all there was the next event tells when it is worth trying
// again.
RT_TEST(Descriptor, AReadThatTookAllIsNotTriedAgainInVain) {
  Pipe pipe;
  std::array<std::byte, 100> buffer;
  int attempts = 0;
  std::atomic<int> taken = 0;
  WaitGroup reader;
  constexpr int kRounds = 50;
  reader.go([&] {
    for (int i = 0; i < kRounds; ++i, ++taken)
      EXPECT_EQ(read_some(*pipe.from, buffer, &attempts).count, 1u);
  });
  for (int i = 0; i < kRounds; ++i) {
    write_one(*pipe.to);
    ASSERT_TRUE(support::eventually([&] { return taken == i + 1; }));
  }
  reader.wait();
  EXPECT_LE(attempts, kRounds + 5);  // the first, its registration, and a late event now and then
}

RT_TEST(Descriptor, ANumberIsClosedWhenTheLastUserHasLeft) {
  Pipe pipe;
  int fd = pipe.from->fd();
  {
    Descriptor::Operation operation(*pipe.from, pipe.from->reader(), "test");
    pipe.from->close();
    EXPECT_EQ(pipe.from->fd(), -1);
    EXPECT_GE(fcntl(fd, F_GETFD), 0);
  }
  EXPECT_EQ(fcntl(fd, F_GETFD), -1);
}

RT_TEST(Descriptor, ABorrowedNumberStaysOpen) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
  { Descriptor borrowed(ends[0], Descriptor::Kind::borrowed); }
  EXPECT_GE(fcntl(ends[0], F_GETFD), 0);
  close(ends[0]);
  close(ends[1]);
}

// A regular file cannot be waited for; reading it never says that it would block.
RT_TEST(Descriptor, WhatCannotBeWaitedForIsAnError) {
  int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  Descriptor descriptor(file, Descriptor::Kind::packets);
  Descriptor::Operation operation(descriptor, descriptor.reader(), "read");
  EXPECT_EQ(operation.perform([](int) -> ssize_t { return -EAGAIN; }).error, EPERM);
}

// Has been waited for in a run(), which has ended.
struct UsedPipe : Pipe {
  UsedPipe() {
    run([this] {
      from->set_deadline(from->reader(), base::now_ns() + 1'000'000);
      std::byte byte;
      EXPECT_EQ(read_some(*from, {&byte, 1}).error, ETIMEDOUT);
      from->set_deadline(from->reader(), timer::kNever);
    });
  }
};

TEST(Descriptor, AThreadThatHasATurnKeepsItWhenAnotherRunBegins) {
  UsedPipe pipe;
  {
    Descriptor::Operation mine(*pipe.from, pipe.from->reader(), "plain thread");
    run([&] { Descriptor::Operation other(*pipe.from, pipe.from->writer(), "goroutine"); });
  }  // else: fatal, it unlocks what nobody holds
  Descriptor::Operation again(*pipe.from, pipe.from->reader(), "plain thread");
}

// The thread comes in during one run() and registers in the next, before anybody of that one comes
// in.
TEST(Descriptor, WhatAThreadHasRegisteredInANewRunIsKept) {
  UsedPipe pipe;
  std::thread plain;
  std::atomic<bool> is_inside{false}, next_runs{false}, is_done{false};
  run([&] {
    { Descriptor::Operation goroutine(*pipe.from, pipe.from->reader(), "goroutine"); }
    plain = std::thread([&] {
      Descriptor::Operation mine(*pipe.from, pipe.from->reader(), "plain thread");
      is_inside = true;
      while (!next_runs) std::this_thread::yield();
      int attempts = 0;
      // In vain once, so that it registers.
      EXPECT_EQ(mine.perform([&](int) -> ssize_t { return ++attempts == 1 ? -EAGAIN : 0; }).error,
                0);
      is_done = true;
    });
    EXPECT_TRUE(support::eventually([&] { return is_inside.load(); }));
  });
  run([&] {
    next_runs = true;
    EXPECT_TRUE(support::eventually([&] { return is_done.load(); }));
    pipe.from->set_deadline(pipe.from->reader(), base::now_ns() + 1'000'000);
    std::byte byte;
    EXPECT_EQ(read_some(*pipe.from, {&byte, 1}).error, ETIMEDOUT);  // not EEXIST
  });
  plain.join();
}

TEST(Descriptor, AThreadBehindAGoroutineThatIsGoneGetsTheTurnInTheNextRun) {
  Pipe pipe;
  std::thread behind;
  std::atomic<bool> waits{false};
  run([&] {
    go([&] {
      std::byte byte;
      (void)read_some(*pipe.from, {&byte, 1});
    });
    EXPECT_TRUE(support::eventually([] { return stats().waiting >= 1; }));
    behind = std::thread([&] {
      waits = true;
      Descriptor::Operation mine(*pipe.from, pipe.from->reader(), "plain thread");
    });
    EXPECT_TRUE(support::eventually([&] { return waits.load(); }));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // most likely it is in line now
  });
  run([&] { Descriptor::Operation other(*pipe.from, pipe.from->writer(), "goroutine"); });
  behind.join();
}

// The thread has the side, the goroutine waits behind it when run() ends. Nobody has
// registered the descriptor.
TEST(Descriptor, ItsDestructorDoesNotWaitForAGoroutineThatWasDroppedWhileItWaitedForItsTurn) {
  auto pipe = std::make_unique<Pipe>();
  int fd = pipe->from->fd();
  {
    std::optional<Descriptor::Operation> mine;
    mine.emplace(*pipe->from, pipe->from->reader(), "plain thread");
    run([&] {
      go([&from = *pipe->from] { Descriptor::Operation other(from, from.reader(), "goroutine"); });
      EXPECT_TRUE(support::eventually([] { return stats().waiting >= 1; }));
    });
  }
  pipe.reset();
  EXPECT_EQ(fcntl(fd, F_GETFD), -1);
}

// The descriptor was used in a run() that has ended. That does not mean that nobody is inside.
TEST(Descriptor, ItsDestructorWaitsForAThreadThatIsInsideAfterItsRun) {
  UsedPipe pipe;
  int fd = pipe.from->fd();
  std::atomic<bool> is_destroyed = false;
  std::thread destroyer;
  {
    Descriptor::Operation mine(*pipe.from, pipe.from->reader(), "plain thread");
    destroyer = std::thread([&] {
      pipe.from.reset();
      is_destroyed = true;
    });
    // Long enough for one that does not wait; one that waits does so for however long.
    (void)support::eventually([&] { return is_destroyed.load(); }, std::chrono::milliseconds(100));
    EXPECT_FALSE(is_destroyed);
    EXPECT_GE(fcntl(fd, F_GETFD), 0);
  }
  destroyer.join();
  EXPECT_EQ(fcntl(fd, F_GETFD), -1);
}

TEST(Descriptor, ATurnOfADroppedGoroutineIsFreeForAPlainThreadWithoutARuntime) {
  Pipe pipe;
  run([&] {
    go([&] {
      std::byte byte;
      (void)read_some(*pipe.from, {&byte, 1});
    });
    EXPECT_TRUE(support::eventually([] { return stats().waiting >= 1; }));
  });
  write_one(*pipe.to);
  std::byte byte;
  EXPECT_EQ(read_some(*pipe.from, {&byte, 1}).count, 1u);
}

// ---- limits

struct TestLimit final : Limit {
  int error() const noexcept override { return context.err().value(); }
  std::stop_token stop_token() const override { return context.stop_token(); }
  bool lock(Mutex& mutex) const override {
    std::error_code ignored;
    return mutex.lock(context, ignored);
  }
  void end() { context.cancel(); }
  Context context = Context::background().with_cancel();
};

RT_TEST(Descriptor, ALimitEndsAWaitAndNothingElse) {
  Pipe pipe;
  for (int i = 0; i < 20; ++i) {
    TestLimit limit;
    WaitGroup reader;
    reader.go([&] {
      std::byte byte;
      EXPECT_EQ(read_some(*pipe.from, {&byte, 1}, nullptr, &limit).error, ECANCELED);
    });
    if (i % 2 == 0) {
      ASSERT_TRUE(support::eventually([] { return stats().waiting >= 1; }));
    }
    limit.end();
    reader.wait();
    write_one(*pipe.to);
    std::byte byte;
    EXPECT_EQ(read_some(*pipe.from, {&byte, 1}).count, 1u);
  }
}

RT_TEST(Descriptor, ALimitReachesThoseWhoWaitForTheirTurn) {
  Pipe pipe;
  TestLimit limit;
  WaitGroup readers;
  Descriptor::Operation mine(*pipe.from, pipe.from->reader(), "first");
  for (int i = 0; i < 4; ++i) {
    readers.go([&] {
      std::byte byte;
      EXPECT_EQ(read_some(*pipe.from, {&byte, 1}, nullptr, &limit).error, ECANCELED);
    });
  }
  ASSERT_TRUE(support::eventually([] { return stats().waiting >= 4; }));
  limit.end();
  readers.wait();
}

TEST(Descriptor, ALimitThatOutlivesARunMayEndWithoutIt) {
  TestLimit limit;
  Pipe pipe;
  run([&] {
    go([&] {
      std::byte byte;
      (void)read_some(*pipe.from, {&byte, 1}, nullptr, &limit);
    });
    EXPECT_TRUE(support::eventually([] { return stats().waiting >= 1; }));
  });
  limit.end();
  write_one(*pipe.to);
  std::byte byte;
  run([&] { EXPECT_EQ(read_some(*pipe.from, {&byte, 1}).count, 1u); });
}

}  // namespace
}  // namespace magpie::io
