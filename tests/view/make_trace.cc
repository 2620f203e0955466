// make_trace.cc: a trace that nobody recorded, of any length: `view_trace FILE WAVES`. Always the
// same bytes.
//
// In each wave goroutine 1, on P0, starts kEach goroutines and waits for them. The other Ps steal
// half of what P0 has left, one after the other. In every 50th wave P3 sleeps through it, and
// nobody wakes it; the goroutines of that wave run for long.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "trace/file_builder.h"

namespace {

using magpie::trace::FileBuilder;
using magpie::trace::Kind;

constexpr int kProcs = 4, kEach = 32;
constexpr std::uint64_t kSite = 0x401000, kMainSite = 0x400800, kWaitGroup = 2, kObject = 0x7000;
// Goroutine 2's. What a page might take for HTML must stay text.
constexpr std::string_view kHostileName = "</script><img src=x onerror='hostile=1'>${hostile=2}";
constexpr std::uint64_t kNext = 0, kRing = 1, kStolen = 7;

class Waves {
 public:
  std::string make(int count) {
    file_.put(0, 0, Kind::proc_begin, {100});
    file_.put(0, 10, Kind::create, {1, kMainSite, kRing, 0});
    file_.text(0, 20, Kind::name, {"main"}, {1});
    file_.text(0, 25, Kind::name, {kHostileName}, {2});
    file_.put(0, 30, Kind::run, {1, kRing});
    for (int i = 0; i < count; ++i) {
      if (i % 2000 == 1999) file_.next_generation(now_);
      wave(i);
    }
    file_.put(0, now_ + 100, Kind::end, {});
    return file_.finish(now_ + 200);
  }

 private:
  std::int64_t random(std::int64_t below) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::int64_t>((state_ >> 33) % static_cast<std::uint64_t>(below));
  }

  // Runs goroutines one after the other on a P and returns when the last has ended.
  std::int64_t run_all(int p, std::int64_t at, const std::vector<std::uint64_t>& mine,
                       std::uint64_t place, bool long_ones) {
    for (std::uint64_t g : mine) {
      file_.put(p, at += 60, Kind::run, {g, place});
      file_.put(p, at += (long_ones ? 300'000 : 2000) + random(20'000), Kind::end, {});
    }
    return at;
  }

  void wave(int number) {
    const bool lazy = number % 50 == 24;
    std::int64_t at = now_;
    std::vector<std::uint64_t> left;
    for (int i = 0; i < kEach; ++i) {
      file_.put(0, at += 120, Kind::create, {++last_, kSite, kRing, 0});
      left.push_back(last_);
    }
    std::vector<std::int64_t> ends;
    const int thieves = lazy ? kProcs - 2 : kProcs - 1;
    for (int p = 1; p <= thieves; ++p) {
      file_.put(0, at += 40, Kind::thread_wake, {static_cast<std::uint64_t>(p)});
      const std::int64_t begin = at + 4000 + random(3000);
      const auto half = left.begin() + static_cast<std::ptrdiff_t>((left.size() + 1) / 2);
      const std::vector<std::uint64_t> stolen(left.begin(), half);
      left.erase(left.begin(), half);
      file_.put(p, begin, Kind::proc_begin, {static_cast<std::uint64_t>(100 + p)});
      file_.put(p, begin + 100, Kind::search_begin, {});
      file_.put(p, begin + 400, Kind::steal, {0, stolen.size(), 0});
      file_.put(p, begin + 450, Kind::search_end, {1});
      ends.push_back(run_all(p, begin + 500, stolen, kStolen, lazy));
    }
    file_.put(0, at += 50, Kind::park, {kWaitGroup, kObject});
    at = run_all(0, at, left, kRing, lazy);
    for (std::int64_t end : ends) at = std::max(at, end);
    for (int p = 1; p <= thieves; ++p) {
      file_.put(p, at + 200, Kind::thread_park, {});
      file_.put(p, at + 210, Kind::proc_end, {});
    }
    // The last of the wave, as it ends, has woken goroutine 1.
    file_.put(0, at + 300, Kind::ready, {1, kNext, 0});
    file_.put(0, at + 400, Kind::run, {1, kNext});
    now_ = at + 5000 + random(20'000);
  }

  FileBuilder file_{FileBuilder::Settings{.procs = kProcs}};
  std::int64_t now_ = 1000;
  std::uint64_t last_ = 1, state_ = 42;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string bytes = Waves().make(std::atoi(argv[2]));
  std::FILE* file = std::fopen(argv[1], "wb");
  if (file == nullptr) return 1;
  const bool written = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  return std::fclose(file) == 0 && written ? 0 : 1;
}
