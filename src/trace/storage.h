// storage.h: where the bytes of a trace are: in memory, or in a file that is read piece by piece.
//
// The file is not mapped. A mapped file that somebody makes shorter ends the process by SIGBUS, and
// the pages of a large one stay in its memory. It stays open: what is read later is of the same
// file, whatever its name stands for by then.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace magpie::trace {

class Storage {
 public:
  // Null: `error` says why.
  static std::shared_ptr<const Storage> open(const std::string& path, std::string& error);
  explicit Storage(std::string bytes) : held_(std::move(bytes)), bytes_(held_.size()) {}
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  // How long it was when it was opened.
  std::uint64_t bytes() const { return bytes_; }

  // Copies what is there of [at, at + most). Less: it ends, or has become shorter. Several threads
  // may read at once.
  std::size_t read(std::uint64_t at, void* to, std::size_t most) const;
  // A read() has missed bytes that were there when the file was opened.
  bool has_missed_bytes() const { return missed_bytes_.load(std::memory_order_relaxed); }

 private:
  Storage(int fd, std::uint64_t bytes) : fd_(fd), bytes_(bytes) {}

  const int fd_ = -1;  // -1: in memory
  const std::string held_;
  const std::uint64_t bytes_;
  mutable std::atomic<bool> missed_bytes_{false};  // atomic, a hint: by any reader, for people
};

// The bytes of a Storage from some place on, for a reader that moves on: pieces of it.
class Window {
 public:
  Window(const Storage& storage, std::size_t piece) : storage_(storage), piece_(piece) {}

  struct Bytes {
    const std::uint8_t* data;
    std::size_t size;
  };
  // At least `least` bytes, which fit in a piece, unless the storage ends before. They stay until
  // the next call.
  Bytes at(std::uint64_t place, std::size_t least);

 private:
  const Storage& storage_;
  const std::size_t piece_;
  std::vector<std::uint8_t> bytes_;
  std::uint64_t begin_ = 0;
};

}  // namespace magpie::trace
