// allowance.h: how long a peer may take for all bytes of a body or an answer: a time to begin with,
// and more for each byte that has got through. Only the time counts in which the server waited for
// the peer.
#pragma once

#include <algorithm>
#include <cstdint>

#include <magpie/detail/deadline.h>

namespace magpie::http {

class Allowance {
 public:
  void begin() { waited_ns_ = 0, bytes_ = 0; }
  void add_bytes(std::uint64_t bytes) { bytes_ += bytes; }
  void add_wait(std::int64_t ns) {
    waited_ns_ = detail::sum_of_ns(waited_ns_, std::max<std::int64_t>(ns, 0));
  }

  // How long it may wait from now on. `bytes_per_second` of 0: for ever.
  std::int64_t left_ns(std::int64_t base_ns, std::uint64_t bytes_per_second) const {
    if (base_ns == detail::kNoDeadline || bytes_per_second == 0) return detail::kNoDeadline;
    constexpr std::uint64_t kSecond = 1'000'000'000, kLongest = 1'000'000'000;  // 30 years
    const std::uint64_t seconds = std::min(bytes_ / bytes_per_second, kLongest);
    const double part = static_cast<double>(bytes_ % bytes_per_second) * kSecond /
                        static_cast<double>(bytes_per_second);
    const auto earned =
        static_cast<std::int64_t>(seconds * kSecond) + static_cast<std::int64_t>(part);
    return std::max<std::int64_t>(detail::sum_of_ns(base_ns, earned) - waited_ns_, 0);
  }

 private:
  std::int64_t waited_ns_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace magpie::http
