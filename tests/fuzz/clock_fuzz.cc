// clock_fuzz.cc: limits on time, with a clock, rates and times that the input chooses. libFuzzer
// calls it; see tests/CMakeLists.txt.
//
// Whatever the clock and the settings are: a peer has its time and no more, one that keeps to the
// rate is never cut off, and whoever waits for as long as was said is let in.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string_view>

#include "http/address_table.h"
#include "http/allowance.h"
#include "http/timeouts.h"

namespace {

using magpie::detail::kNoDeadline;
using magpie::http::AddressTable;
using magpie::http::Allowance;

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "it does not hold: %s\n", what);
  std::abort();
}

// Numbers out of the input; zeros when it is used up.
class Numbers {
 public:
  explicit Numbers(std::string_view input) : left_(input) {}
  bool empty() const { return left_.empty(); }

  // Of any size: as many bits as the first byte says.
  std::uint64_t any() {
    unsigned bits = byte() % 65;
    std::uint64_t number = 0;
    for (unsigned taken = 0; taken < bits; taken += 8) number = number << 8 | byte();
    return bits == 64 ? number : number & ((std::uint64_t{1} << bits) - 1);
  }
  std::int64_t not_negative() { return static_cast<std::int64_t>(any() >> 1); }

 private:
  unsigned char byte() {
    if (left_.empty()) return 0;
    auto first = static_cast<unsigned char>(left_[0]);
    left_.remove_prefix(1);
    return first;
  }
  std::string_view left_;
};

// A peer that sends, or takes, bytes in turns.
void try_allowance(Numbers numbers) {
  const std::int64_t base = numbers.not_negative();
  const std::uint64_t rate = numbers.any();
  Allowance allowance;
  allowance.begin();
  unsigned __int128 waited = 0, bytes = 0;
  for (int turns = 0; !numbers.empty() && turns < 100; ++turns) {
    const std::int64_t left = allowance.left_ns(base, rate);
    require(left >= 0, "a time is not negative");
    if (base == kNoDeadline || rate == 0) {
      require(left == kNoDeadline, "without a limit there is time for ever");
    } else {
      const unsigned __int128 earned = bytes * 1'000'000'000 / rate;
      require(waited + static_cast<std::uint64_t>(left) <=
                      static_cast<std::uint64_t>(base) + earned + 1 ||
                  left == 0,
              "nobody has more than the time and what the bytes have earned");
      const bool can_be_counted =
          earned < 1'000'000'000'000'000'000 && base < 1'000'000'000'000'000'000;
      if (can_be_counted && waited + 1'000 < static_cast<std::uint64_t>(base) + earned)
        require(left > 0, "who keeps to the rate has time");
    }
    const std::int64_t wait = numbers.not_negative();
    allowance.add_wait(wait);
    waited += static_cast<std::uint64_t>(wait);
    const std::uint64_t more = numbers.any() >> 8;  // their sum is counted in 64 bits
    allowance.add_bytes(more);
    bytes += more;
  }
}

// One address among others, on a clock that goes on in steps of any length.
void try_addresses(Numbers numbers) {
  double rate;
  std::uint64_t bits = numbers.any();
  std::memcpy(&rate, &bits, sizeof rate);
  const std::size_t burst = numbers.any();
  try {
    AddressTable table(0, rate, burst);
    if (!table.counts_requests()) return;
    std::int64_t now = 0;
    for (int turns = 0; !numbers.empty() && turns < 200; ++turns) {
      now = magpie::detail::sum_of_ns(now, numbers.not_negative());
      if (now > kNoDeadline / 2) return;  // after 146 years
      const AddressTable::Key key{0, numbers.any() % 4};
      const std::int64_t wait = table.add_request(key, now);
      require(wait >= 0, "a wait is not negative");
      if (wait == 0) continue;
      require(table.add_request(key, now) > 0, "who is refused is refused again at once");
      now = magpie::detail::sum_of_ns(now, wait);
      require(table.add_request(key, now) == 0, "who waits as long as was said is let in");
    }
  } catch (const std::invalid_argument&) {
    require(!(rate >= 0) || rate > 1e308, "a rate is refused only if it is none");
  }
}

void try_due(Numbers numbers) {
  const std::int64_t now = numbers.not_negative() / 2, time = numbers.not_negative();
  const std::int64_t due = magpie::http::due_in(now, time);
  require(due >= now && due >= time, "what is due later is not due before now");
  require(time != kNoDeadline || due == kNoDeadline, "never stays never");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  try_allowance(Numbers(input));
  try_addresses(Numbers(input));
  try_due(Numbers(input));
  return 0;
}
