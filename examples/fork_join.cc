// fork_join.cc: quicksort whose halves are goroutines.
//
// The pattern: spawn one half, do the other yourself, join. Usually nobody has taken the spawned
// half by then, and join() simply runs it in place, like a function call. When another P has
// nothing to do it steals a half instead: the oldest, hence the largest, so one steal brings work
// for long.
#include <magpie/magpie.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <span>
#include <vector>

namespace {

void sort(std::span<std::uint32_t> values) {
  constexpr std::size_t kSmall = 2048;  // below this a goroutine costs more than it brings
  while (values.size() > kSmall) {
    std::uint32_t pivot = values[values.size() / 2];
    auto middle = std::partition(values.begin(), values.end(),
                                 [pivot](std::uint32_t value) { return value < pivot; });
    auto upper = std::partition(middle, values.end(),
                                [pivot](std::uint32_t value) { return value == pivot; });
    auto below = values.first(static_cast<std::size_t>(middle - values.begin()));
    auto above = values.last(static_cast<std::size_t>(values.end() - upper));
    auto half = magpie::spawn(sort, below);
    sort(above);
    half.join();
    return;
  }
  std::sort(values.begin(), values.end());
}

std::vector<std::uint32_t> random_numbers(std::size_t count) {
  std::vector<std::uint32_t> numbers(count);
  std::uint32_t state = 2463534242;  // a fixed seed: every run sorts the same
  for (auto& number : numbers) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    number = state;
  }
  return numbers;
}

}  // namespace

int main() {
  std::vector<std::uint32_t> numbers = random_numbers(4'000'000);

  magpie::Stats stats = magpie::run([&] {
    sort(numbers);
    return magpie::stats();
  });

  bool sorted = std::is_sorted(numbers.begin(), numbers.end());
  std::printf("%zu numbers, %s\n", numbers.size(), sorted ? "sorted" : "NOT SORTED");
  std::uint64_t spawned = stats.total.goroutines_started - 1;  // without goroutine 1
  std::printf("%llu halves spawned, %llu of them run in place by join(), on %zu Ps\n",
              static_cast<unsigned long long>(spawned),
              static_cast<unsigned long long>(stats.total.joined_in_place), stats.procs.size());
  return sorted ? 0 : 1;
}
