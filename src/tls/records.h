// records.h: the bytes of a write, a record's worth at a time. Small parts are put together.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace magpie::net {

inline constexpr std::size_t kRecord = 16 * 1024;  // the most that TLS puts in one

class Records {
 public:
  explicit Records(std::span<const std::span<const std::byte>> parts) : parts_(parts) {}

  // Empty: there are no more.
  std::span<const std::byte> next() {
    while (!parts_.empty() && parts_[0].size() == done_) {
      parts_ = parts_.subspan(1);
      done_ = 0;
    }
    if (parts_.empty()) return {};
    std::span<const std::byte> first = parts_[0].subspan(done_);
    if (parts_.size() == 1 || first.size() >= kRecord) {
      std::span<const std::byte> record = first.first(std::min(first.size(), kRecord));
      done_ += record.size();
      return record;
    }
    gathered_.clear();
    while (!parts_.empty() && gathered_.size() < kRecord) {
      std::span<const std::byte> part = parts_[0].subspan(done_);
      std::size_t count = std::min(part.size(), kRecord - gathered_.size());
      gathered_.insert(gathered_.end(), part.begin(),
                       part.begin() + static_cast<std::ptrdiff_t>(count));
      done_ += count;
      if (done_ < parts_[0].size()) break;
      parts_ = parts_.subspan(1);
      done_ = 0;
    }
    return gathered_;
  }

 private:
  std::span<const std::span<const std::byte>> parts_;
  std::size_t done_ = 0;  // of the first part
  std::vector<std::byte> gathered_;
};

}  // namespace magpie::net
