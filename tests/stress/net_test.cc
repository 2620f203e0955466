// net_test.cc: connections come and go, are closed, cut off and run out of time while others talk.

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <random>
#include <string>
#include <system_error>

#include "support/net_test.h"
#include "support/test_length.h"

namespace magpie {
namespace {

using namespace std::chrono_literals;
using support::tcp_pair;

bool is_expected(const std::error_code& error) {
  return error == std::errc::timed_out || error == std::errc::operation_canceled ||
         error == std::errc::connection_reset || error == std::errc::broken_pipe;
}

// Talks until something ends it. A byte of another connection would be an error.
template <class F>
void until_it_ends(std::atomic<int>& wrong, F f) {
  try {
    f();
  } catch (const std::system_error& error) {
    if (!is_expected(error.code())) ++wrong;
  }
}

// One connection: a reader, a writer, and somebody who ends it at a bad moment.
void one_connection(std::mt19937_64& random, std::atomic<int>& wrong) {
  auto [client, server] = tcp_pair();
  const auto mark = static_cast<std::byte>(random() % 251 + 1);
  const auto after = std::chrono::microseconds(random() % 300);
  const auto ending = random() % 4;
  WaitGroup all;
  all.go([&c = client, &wrong, mark] {
    until_it_ends(wrong, [&] {
      std::array<std::byte, 97> bytes;
      bytes.fill(mark);
      for (;;) c.write(bytes);
    });
  });
  all.go([&s = server, &wrong, mark] {
    until_it_ends(wrong, [&] {
      std::array<std::byte, 64> bytes;
      while (std::size_t count = s.read(bytes)) {
        for (std::size_t i = 0; i < count; ++i) {
          if (bytes[i] != mark) ++wrong;
        }
      }
    });
    s.close();
  });
  all.go([&c = client, &s = server, after, ending] {
    sleep_for(after);
    switch (ending) {
      case 0:
        s.close();
        break;
      case 1:
        c.close();
        break;
      case 2:
        c.set_deadline(after);
        s.set_deadline(after);
        break;
      default:
        s.set_deadline(100us);
        c.set_deadline(1h);
        c.set_deadline(50us);
        break;
    }
  });
  all.wait();
}

RT_TEST(NetStress, ConnectionsEndAtAnyMoment) {
  const std::uint64_t seed = support::printed_seed();
  std::atomic<int> wrong = 0;
  WaitGroup workers;
  for (std::uint64_t i = 0; i < 8; ++i) {
    workers.go([&wrong, seed, i] {
      std::mt19937_64 random(seed + i);
      for (int round = 0; round < support::scaled(60); ++round) one_connection(random, wrong);
    });
  }
  workers.wait();
  EXPECT_EQ(wrong, 0);
}

// Loops and blocking calls beside the network: Ps are taken, threads come and go, the poller
// changes hands.
RT_TEST(NetStress, EverythingElseGoesOnBesideIt) {
  std::atomic<bool> over = false;
  WaitGroup all, talking;
  all.go([&over] {
    while (!over.load(std::memory_order_relaxed)) {
    }
  });
  all.go([&over] {
    while (!over) blocking([] { usleep(300); });
  });
  all.go([&over] {
    while (!over) sleep_for(200us);
  });
  for (int i = 0; i < 10; ++i) {
    talking.go([] {
      auto [client, server] = tcp_pair();
      WaitGroup echoing;
      echoing.go([&s = server] {
        std::byte buffer[100];
        while (std::size_t count = s.read(buffer)) s.write(std::span(buffer, count));
      });
      for (int round = 0; round < support::scaled(100); ++round) {
        std::string text = std::to_string(round);
        client.write(text);
        EXPECT_EQ(support::read_text(client, text.size()), text);
      }
      client.close();
      echoing.wait();
    });
  }
  talking.wait();
  over = true;
  all.wait();
}

}  // namespace
}  // namespace magpie
