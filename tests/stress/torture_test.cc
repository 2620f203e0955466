// torture_test.cc: goroutines are stopped in the middle of everything that C++ programs do, and
// nothing breaks.
//
// The program is also run with other allocators in front (see tests/CMakeLists.txt), and compiled
// with -O3 and link-time optimisation by both compilers: a compiler that keeps the address of a
// thread_local over a call is the classic killer here.

#include <gtest/gtest.h>
#include <magpie/magpie.h>
#include <unistd.h>

#include <atomic>
#include <cfenv>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/rt_test.h"
#include "support/test_length.h"

namespace magpie {
namespace {

using namespace std::chrono_literals;

thread_local std::uint64_t per_thread = 0;

// Each returns something that is wrong if registers, stacks or thread_locals were mixed up.

bool allocate(std::mt19937& random) {
  std::vector<std::unique_ptr<std::vector<int>>> kept;
  for (int i = 0; i < 50; ++i) {
    kept.push_back(std::make_unique<std::vector<int>>(random() % 2000, i));
    if (random() % 3 == 0) kept.erase(kept.begin() + static_cast<long>(random() % kept.size()));
  }
  for (auto& one : kept) {
    if (!one->empty() && one->front() != one->back()) return false;
  }
  return true;
}

bool throw_and_catch(std::mt19937& random) {
  const std::string text = std::to_string(random());
  try {
    try {
      throw std::runtime_error(text);
    } catch (...) {
      if (!allocate(random)) return false;
      throw;
    }
  } catch (const std::exception& caught) {
    return caught.what() == text;
  }
}

bool format(std::mt19937& random) {
  char text[128];
  const unsigned number = random();
  std::snprintf(text, sizeof text, "%u %.3f %s", number, number / 3.0, "words");
  return std::stoul(text) == number;
}

bool compute(std::mt19937& random) {
  const int mode = random() % 2 == 0 ? FE_UPWARD : FE_TONEAREST;
  std::fesetround(mode);
  double values[16];
  for (int i = 0; i < 16; ++i) values[i] = i + 1;
  for (int round = 0; round < 2000; ++round) {
    for (double& value : values) value = std::sqrt(value * value);
  }
  const bool right = std::fegetround() == mode && std::fabs(values[15] - 16) < 1e-6;
  std::fesetround(FE_TONEAREST);
  return right;
}

// Stopped with values in wide registers and in mask registers, which a switch between goroutines
// does not save.
#if defined(__x86_64__)
[[gnu::target("avx512f"), gnu::noinline]] bool compute_widely(unsigned first) {
  using Wide [[gnu::vector_size(64)]] = std::uint64_t;
  const Wide one = Wide{} + 1, three = Wide{} + 3;
  Wide lanes[30];
  for (unsigned i = 0; i < 30; ++i) lanes[i] = Wide{} + first + i;
  for (int round = 0; round < 1000; ++round) {
    for (Wide& wide : lanes) wide = wide + ((wide & one) == one ? three : one);  // by a mask
  }
  for (unsigned i = 0; i < 30; ++i) {
    // Odd: + 3 makes it even; even: + 1 makes it odd. So + 4 every two rounds.
    for (int lane = 0; lane < 8; ++lane) {
      if (lanes[i][lane] != first + i + 2000) return false;
    }
  }
  return true;
}

bool compute_in_wide_registers(std::mt19937& random) {
  static const bool can = __builtin_cpu_supports("avx512f") != 0;
  return !can || compute_widely(random() % 1000);
}
#endif

// Stopped inside the C library, with a stream's lock held.
bool print(std::mt19937& random) {
  static std::FILE* const nowhere = std::fopen("/dev/null", "w");
  const int length = std::fprintf(nowhere, "%08x %s\n", static_cast<unsigned>(random()), "words");
  if (random() % 8 == 0) std::fflush(nowhere);
  return length == 15;
}

// Nothing in it calls the runtime, so the goroutine stays on its thread.
bool count_per_thread(std::mt19937&) {
  const pid_t thread = gettid();
  const std::uint64_t before = per_thread;
  for (int i = 0; i < 20'000; ++i) per_thread = per_thread + 1;
  return per_thread == before + 20'000 && gettid() == thread;
}

bool share(std::mt19937& random) {
  static std::mutex mutex;
  static std::map<unsigned, std::shared_ptr<std::string>> shared;
  std::lock_guard hold(mutex);
  const unsigned key = random() % 100;
  auto& value = shared[key];
  if (value == nullptr) value = std::make_shared<std::string>(std::to_string(key));
  auto copy = value;
  if (random() % 10 == 0) shared.erase(key);
  return *copy == std::to_string(key);
}

bool use_the_runtime(std::mt19937& random) {
  Chan<unsigned> values(2);
  const unsigned number = random();
  go([values, number] { values.send(number); });
  if (*values.recv() != number) return false;
  if (spawn([number] { return number + 1; }).join() != number + 1) return false;
  blocking([] { usleep(20); });
  return true;
}

// Some of these in a row take milliseconds, in which nobody calls the runtime.
constexpr bool (*kParts[])(std::mt19937&) = {
#if defined(__x86_64__)
    compute_in_wide_registers,
#endif
    allocate,
    throw_and_catch,
    format,
    print,
    compute,
    share,
    count_per_thread};

bool suffer(std::mt19937& random) {
  const auto part = kParts[random() % std::size(kParts)];
  for (unsigned times = 1 + random() % 100; times != 0; --times) {
    if (!part(random)) return false;
  }
  return use_the_runtime(random);
}

void torture(int procs, std::chrono::milliseconds how_long) {
  run(Options{.procs = procs, .time_slice = 1ms}, [&] {
    constexpr std::uint64_t kLeastPreemptions = 10;
    const auto end = std::chrono::steady_clock::now() + how_long;
    auto goes_on = [&] {
      return std::chrono::steady_clock::now() < end ||
             stats().total.preemptions < kLeastPreemptions;
    };
    std::atomic<long> rounds{0};
    std::atomic<int> wrong{0};
    WaitGroup group;
    for (unsigned seed = 0; seed < 16; ++seed) {
      group.go([&, seed] {
        std::mt19937 random(seed);
        do {  // once at least, however busy the machine is
          if (!suffer(random)) ++wrong;
          ++rounds;
        } while (goes_on());
      });
    }
    // Wakes up all the time, so that somebody is stopped all the time.
    group.go([&] {
      while (goes_on()) sleep_for(500us);
    });
    group.wait();
    EXPECT_EQ(wrong.load(), 0);
    std::printf("procs=%d: %ld rounds, %lu preemptions, %lu hand-offs, %d threads\n", procs,
                rounds.load(), static_cast<unsigned long>(stats().total.preemptions),
                static_cast<unsigned long>(stats().total.handoffs), num_threads());
  });
}

// MAGPIE_STRESS=long makes minutes of it.
std::chrono::milliseconds length() { return std::chrono::milliseconds(support::scaled(2000)); }

TEST(Torture, AtOneProc) { torture(1, length()); }
TEST(Torture, AtTwoProcs) { torture(2, length()); }
TEST(Torture, AtFourProcs) { torture(4, length()); }

}  // namespace
}  // namespace magpie
