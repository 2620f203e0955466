// core_file.h: the memory and the threads of a process, from the core file that the kernel wrote.
//
// The file is read piece by piece, not mapped: the core of a million goroutines has tens of
// gigabytes, most of them holes. It may say anything: all numbers are checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace magpie::analysis {

// As unwinders need them. The names are those of x86-64; `frame` is rbp or x29.
struct ThreadRegisters {
  std::uint64_t pc = 0, sp = 0, frame = 0;
  // By their DWARF numbers: x86-64 has 16, AArch64 31 and its sp.
  std::vector<std::uint64_t> all;
};

class CoreFile {
 public:
  // Null: `error` says why.
  static std::unique_ptr<CoreFile> open(const std::string& path, std::string& error);
  ~CoreFile();
  CoreFile(const CoreFile&) = delete;
  CoreFile& operator=(const CoreFile&) = delete;

  // How much of [address, address + most) the file has, from its beginning on; it is copied.
  std::size_t read(std::uint64_t address, void* to, std::size_t most) const;
  std::optional<std::uint64_t> word(std::uint64_t address) const;

  int descriptor() const { return fd_; }
  std::int64_t pid() const { return pid_; }
  const std::string& program() const { return program_; }  // its path; empty: the file does not say
  // By thread id. Of the signal that ended the process: that thread comes first in the file.
  const std::map<std::int64_t, ThreadRegisters>& threads() const { return threads_; }

 private:
  struct Segment {
    std::uint64_t address, bytes, place;
  };

  explicit CoreFile(int fd) : fd_(fd) {}
  bool read_file(std::uint64_t place, void* to, std::size_t bytes) const;
  bool find_segments(std::string& error);
  void read_notes(const std::vector<char>& notes);
  void note_files(const char* text, std::size_t bytes);
  const Segment* segment_of(std::uint64_t address) const;

  const int fd_;
  std::uint64_t file_bytes_ = 0;
  std::vector<Segment> segments_;  // by address
  mutable const Segment* last_ = nullptr;
  std::int64_t pid_ = 0;
  std::uint64_t entry_ = 0;  // of the program
  std::string program_;
  std::map<std::int64_t, ThreadRegisters> threads_;
};

}  // namespace magpie::analysis
