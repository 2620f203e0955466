// chan_test.cc: channels and selects under load: nothing is lost, nothing arrives twice, nobody is
// forgotten.

#include <magpie/magpie.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "support/plain_thread.h"
#include "support/rt_test.h"
#include "support/test_length.h"

namespace magpie {
namespace {

using support::PlainThread;
using support::printed_seed;
using support::scaled;

// Each value once: senders send distinct numbers, receivers tick them off.
class Ticked {
 public:
  explicit Ticked(std::size_t count) : marks_(count) {}
  void tick(long value) { EXPECT_EQ(marks_[static_cast<std::size_t>(value)].fetch_add(1), 0); }
  void expect_all() const {
    for (auto& mark : marks_) ASSERT_EQ(mark, 1);
  }

 private:
  std::vector<std::atomic<int>> marks_;
};

RT_TEST(ChanStress, ManySendersAndReceiversLoseNothing) {
  for (std::size_t capacity : {0, 1, 5}) {
    constexpr long kSenders = 10, kReceivers = 10;
    const long each = scaled(2000);
    Ticked ticked(static_cast<std::size_t>(kSenders * each));
    Chan<long> c(capacity);
    WaitGroup senders, receivers;
    for (long s = 0; s < kSenders; ++s) {
      senders.go([&, s] {
        for (long i = 0; i < each; ++i) c.send(s * each + i);
      });
    }
    for (long r = 0; r < kReceivers; ++r) {
      receivers.go([&] {
        for (long value : c) ticked.tick(value);
      });
    }
    senders.wait();
    c.close();
    receivers.wait();
    ticked.expect_all();
  }
}

RT_TEST(ChanStress, PlainThreadsAmongGoroutinesLoseNothing) {
  for (std::size_t capacity : {0, 3}) {
    const long each = scaled(1000);
    Ticked ticked(static_cast<std::size_t>(6 * each));
    Chan<long> c(capacity);
    WaitGroup senders, receivers;
    auto send_all = [&](long s) {
      for (long i = 0; i < each; ++i) c.send(s * each + i);
    };
    auto receive_all = [&] {
      for (long value : c) ticked.tick(value);
    };
    for (long s = 0; s < 3; ++s) senders.go([&, s] { send_all(s); });
    for (int r = 0; r < 3; ++r) receivers.go(receive_all);
    PlainThread one(receive_all), two(receive_all);
    {
      PlainThread three([&] { send_all(3); }), four([&] { send_all(4); }),
          five([&] { send_all(5); });
    }
    senders.wait();
    c.close();
    receivers.wait();
    one.join();
    two.join();
    ticked.expect_all();
  }
}

RT_TEST(ChanStress, RandomSelectsOverAFewChannelsLoseNothing) {
  const std::uint64_t seed = printed_seed();
  std::vector<Chan<long>> channels{Chan<long>(), Chan<long>(1), Chan<long>(4), Chan<long>()};
  constexpr long kSenders = 8, kReceivers = 8;
  const long each = scaled(1000);
  Ticked ticked(static_cast<std::size_t>(kSenders * each));
  Chan<void> quit;
  WaitGroup senders, receivers;
  for (long s = 0; s < kSenders; ++s) {
    senders.go([&, s] {
      std::mt19937_64 random(seed + static_cast<std::uint64_t>(s));
      auto any = [&]() -> Chan<long>& { return channels[random() % channels.size()]; };
      for (long i = 0; i < each; ++i) {
        long value = s * each + i;
        switch (random() % 4) {
          case 0:
            any().send(value);
            break;
          case 1:
            select(on_send(any(), value), on_send(any(), value), on_send(any(), value));
            break;
          case 2:
            while (select(on_send(any(), value), on_send(any(), value), otherwise()) == 2) yield();
            break;
          case 3:
            while (select(on_send(any(), value), on_timeout(std::chrono::microseconds(10))) == 1) {
            }
            break;
        }
      }
    });
  }
  for (long r = 0; r < kReceivers; ++r) {
    receivers.go([&] {
      auto tick = [&](std::optional<long> value) { ticked.tick(*value); };
      for (bool more = true; more;) {
        select(on_recv(channels[0], tick), on_recv(channels[1], tick), on_recv(channels[2], tick),
               on_recv(channels[3], tick), on_recv(quit, [&](bool) { more = false; }));
      }
    });
  }
  senders.wait();
  // What is in the buffers is received before the quit is seen, or here.
  quit.close();
  receivers.wait();
  for (auto& c : channels) {
    while (auto value = c.try_recv()) ticked.tick(*value);
  }
  ticked.expect_all();
}

RT_TEST(ChanStress, ClosingMeetsSendersReceiversAndSelects) {
  for (int round = 0; round < scaled(500); ++round) {
    Chan<long> c(static_cast<std::size_t>(round % 3)), other;
    std::atomic<long> sent{0}, received{0};
    WaitGroup all;
    for (int i = 0; i < 3; ++i) {
      all.go([&] {
        try {
          for (;;) {
            c.send(1);
            ++sent;
          }
        } catch (const ClosedChannel&) {
        }
      });
      all.go([&] {
        while (c.recv()) ++received;
      });
      all.go([&] {
        for (bool open = true; open;) {
          select(on_recv(c,
                         [&](std::optional<long> value) {
                           open = value.has_value();
                           if (open) ++received;
                         }),
                 on_recv(other));
        }
      });
      all.go([&] {
        try {
          for (;;) select(on_send(c, 1, [&] { ++sent; }), on_recv(other));
        } catch (const ClosedChannel&) {
        }
      });
    }
    for (int i = 0; i < round % 20; ++i) yield();
    c.close();
    all.wait();
    ASSERT_EQ(sent, received);
  }
}

RT_TEST(ChanStress, ChannelsThatAreDroppedWhileTheirLastUserIsStillWakingUp) {
  const int rounds = scaled(5000);
  WaitGroup all;
  for (int i = 0; i < 4; ++i) {
    all.go([rounds] {
      for (int n = 0; n < rounds; ++n) {
        Chan<std::unique_ptr<int>> ask;
        Chan<int> answer;
        go([ask, answer] { answer.send(**ask.recv()); });
        ask.send(std::make_unique<int>(n));
        ask = Chan<std::unique_ptr<int>>::nil();
        ASSERT_EQ(answer.recv(), n);
      }
    });
  }
  all.wait();
}

}  // namespace
}  // namespace magpie
