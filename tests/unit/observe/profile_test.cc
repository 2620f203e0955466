// Profiles of waits. What pprof makes of them: tests/profiles.
#include <gtest/gtest.h>
#include <magpie/magpie.h>
#include <magpie/profile.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace std::chrono_literals;
namespace profile = magpie::profile;

// The parts of a message of Protocol Buffers that profiles have: numbers and bytes.
class Reader {
 public:
  explicit Reader(std::string_view message) : left_(message) {}
  bool next() {
    if (left_.empty()) return false;
    std::uint64_t key = varint();
    field = key >> 3;
    if ((key & 7) == 0) {
      number = varint();
    } else {
      std::size_t length = varint();
      bytes = left_.substr(0, length);
      left_.remove_prefix(length);
    }
    return true;
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      auto byte = static_cast<unsigned char>(left_.front());
      left_.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
  }
  std::uint64_t field = 0, number = 0;
  std::string_view bytes;

 private:
  std::string_view left_;
};

struct Sums {
  std::uint64_t waits = 0, waited_ns = 0;
};

// Of all samples. Each has two values.
Sums sums_of(const std::string& text) {
  Sums sums;
  for (Reader all(text); all.next();) {
    if (all.field != 2) continue;
    for (Reader sample(all.bytes); sample.next();) {
      if (sample.field != 2) continue;
      Reader values(sample.bytes);
      sums.waits += values.varint();
      sums.waited_ns += values.varint();
    }
  }
  return sums;
}

// `count` goroutines wait at a Mutex until all of them do.
void contend(int count) {
  magpie::run(magpie::Options{.procs = 2}, [count] {
    magpie::Mutex gate;
    magpie::WaitGroup group;
    gate.lock();
    for (int i = 0; i < count; ++i) {
      group.go([&] {
        gate.lock();
        gate.unlock();
      });
    }
    while (magpie::stats().waiting < static_cast<std::size_t>(count)) magpie::yield();
    gate.unlock();
    while (magpie::stats().goroutines > 1) magpie::yield();
  });
}

TEST(Profile, HasEveryWaitIfThePeriodIsANanosecond) {
  profile::start({.period = 1ns});
  contend(20);
  profile::stop();
  Sums locks = sums_of(profile::pprof(profile::Waits::locks));
  EXPECT_GE(locks.waits, 20u);  // a goroutine that was woken may find the Mutex taken again
  EXPECT_GE(locks.waited_ns, 20u);
  EXPECT_GE(sums_of(profile::pprof()).waits, locks.waits);
}

TEST(Profile, HasNothingOfWhatHappenedWhileItWasOff) {
  profile::start({.period = 1ns});
  profile::stop();
  contend(3);
  EXPECT_EQ(sums_of(profile::pprof()).waits, 0u);
}

TEST(Profile, ForgetsAtTheNextStart) {
  profile::start({.period = 1ns});
  contend(3);
  profile::start({.period = 1ns});
  profile::stop();
  EXPECT_EQ(sums_of(profile::pprof()).waits, 0u);
}

TEST(Profile, CanBeReadInAGoroutineWhileItGoesOn) {
  profile::start({.period = 1ns});
  magpie::run(magpie::Options{.procs = 2}, [] {
    magpie::Chan<int> numbers;
    magpie::go([numbers] {
      for (int i = 0; i < 1'000; ++i) numbers.send(i);
      numbers.close();
    });
    std::uint64_t before = 0;
    while (std::optional<int> number = numbers.recv()) {
      if (*number % 100 != 0) continue;
      std::uint64_t now = sums_of(profile::pprof()).waits;
      EXPECT_GE(now, before);
      before = now;
    }
    EXPECT_GT(before, 0u);
  });
  profile::stop();
}

TEST(Profile, RefusesAPeriodThatIsNotPositive) {
  EXPECT_THROW(profile::start({.period = 0ns}), std::invalid_argument);
}

}  // namespace
