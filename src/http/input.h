// input.h: bytes that came from a connection and have not been used up.
//
//     | free | message: head | body so far, next messages | free |
//            ^ begin                                      ^ end
//
// Offsets count from the beginning of the message, so that they stay true when the bytes move.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>

namespace magpie::http {

class Input {
 public:
  static constexpr std::size_t kFirstCapacity = 4096;

  Input() = default;
  // Begins in memory of the owner. The owner keeps it.
  explicit Input(std::span<char> first)
      : first_(first), data_(first.data()), capacity_(first.size()) {}
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  const char* message() const { return data_ + begin_; }
  // From the beginning of the message, or from an offset in it.
  std::string_view bytes(std::size_t from = 0) const {
    return {message() + from, end_ - begin_ - from};
  }
  std::size_t size() const { return end_ - begin_; }

  // Forgets the first bytes: the message begins after them.
  void drop(std::size_t n) {
    begin_ += n;
    if (begin_ == end_) begin_ = end_ = 0;
  }
  // Takes bytes out behind an offset.
  void erase(std::size_t from, std::size_t n) {
    char* at = data_ + begin_ + from;
    if (begin_ + from + n < end_) std::memmove(at, at + n, end_ - begin_ - from - n);
    end_ -= n;
  }
  void clear() { begin_ = end_ = 0; }

  // Room for more bytes, at least `least`, to be followed by filled(). Moves the message. Throws
  // std::bad_alloc.
  std::span<char> room(std::size_t least) {
    if (capacity_ - end_ < least) make_room(least);
    return {data_ + end_, capacity_ - end_};
  }
  void filled(std::size_t n) { end_ += n; }

  std::size_t capacity() const { return capacity_; }
  bool has_grown() const { return larger_ != nullptr; }
  std::size_t first_capacity() const { return first_.size(); }
  // Gives a buffer back that has grown. Only when it is empty.
  void shrink() {
    larger_.reset();
    data_ = first_.data();
    capacity_ = first_.size();
    begin_ = end_ = 0;
  }

 private:
  void make_room(std::size_t least) {
    std::size_t n = size();
    if (capacity_ - n >= least) {
      std::memmove(data_, data_ + begin_, n);
    } else {
      std::size_t capacity = std::max({kFirstCapacity, capacity_ * 2, n + least});
      auto larger = std::make_unique_for_overwrite<char[]>(capacity);
      if (n > 0) std::memcpy(larger.get(), data_ + begin_, n);
      larger_ = std::move(larger);
      data_ = larger_.get();
      capacity_ = capacity;
    }
    begin_ = 0;
    end_ = n;
  }

  std::span<char> first_;
  std::unique_ptr<char[]> larger_;
  char* data_ = nullptr;
  std::size_t capacity_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace magpie::http
