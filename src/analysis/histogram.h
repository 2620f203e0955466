// histogram.h: how often which duration was seen, in buckets of about one percent.
//
// Below 64 every value has a bucket of its own; above, each power of two is split into 64. A quantile
// is the mean of the bucket that it falls into, so it is off by less than one percent.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace magpie::analysis {

inline int bucket_of(std::int64_t value) {
  if (value < 64) return value < 0 ? 0 : static_cast<int>(value);
  const int exponent = std::bit_width(static_cast<std::uint64_t>(value)) - 7;
  return 64 * exponent + static_cast<int>(value >> exponent);
}

// The smallest value of a bucket.
inline std::int64_t lower_end_of(int bucket) {
  if (bucket < 128) return bucket;
  const int exponent = bucket / 64 - 1;
  return static_cast<std::int64_t>(64 + bucket % 64) << exponent;
}

// `Extra` is summed up per bucket beside the values: the parts of a latency.
struct Nothing {
  Nothing& operator+=(const Nothing&) { return *this; }
};

template <class Extra = Nothing>
class Histogram {
 public:
  struct Bucket {
    std::uint64_t count = 0;
    std::int64_t sum = 0;
    Extra extra{};
  };

  void add(std::int64_t value, const Extra& extra = {}) {
    Bucket& bucket = need(bucket_of(value));
    ++bucket.count;
    bucket.sum += value;
    bucket.extra += extra;
    ++count_;
    sum_ += value;
    largest_ = std::max(largest_, value);
  }

  // The bucket of the value below which `share` of all values lie; nullptr when there is none.
  const Bucket* at(double share) const {
    const auto wanted = static_cast<std::uint64_t>(share * static_cast<double>(count_));
    std::uint64_t seen = 0;
    for (const auto& octave : octaves_) {
      if (octave == nullptr) continue;
      for (const Bucket& bucket : *octave) {
        seen += bucket.count;
        if (bucket.count != 0 && (seen > wanted || seen == count_)) return &bucket;
      }
    }
    return nullptr;
  }

  std::int64_t quantile(double share) const {
    const Bucket* bucket = at(share);
    return bucket == nullptr ? 0 : bucket->sum / static_cast<std::int64_t>(bucket->count);
  }

  std::uint64_t count() const { return count_; }
  std::int64_t sum() const { return sum_; }
  std::int64_t largest() const { return largest_; }
  // Those that are not empty, by bucket_of().
  std::map<int, Bucket> buckets() const {
    std::map<int, Bucket> result;
    for (std::size_t i = 0; i < octaves_.size(); ++i)
      for (std::size_t k = 0; octaves_[i] != nullptr && k < kPerOctave; ++k)
        if (const Bucket& bucket = (*octaves_[i])[k]; bucket.count != 0)
          result.emplace(static_cast<int>(i * kPerOctave + k), bucket);
    return result;
  }

 private:
  static constexpr std::size_t kPerOctave = 64;
  using Octave = std::array<Bucket, kPerOctave>;

  Bucket& need(int index) {
    const std::size_t octave = static_cast<std::size_t>(index) / kPerOctave;
    if (octave >= octaves_.size()) octaves_.resize(octave + 1);
    if (octaves_[octave] == nullptr) octaves_[octave] = std::make_shared<Octave>();
    return (*octaves_[octave])[static_cast<std::size_t>(index) % kPerOctave];
  }

  std::vector<std::shared_ptr<Octave>> octaves_;  // null: empty; only one histogram writes to it
  std::uint64_t count_ = 0;
  std::int64_t sum_ = 0;
  std::int64_t largest_ = 0;
};

}  // namespace magpie::analysis
