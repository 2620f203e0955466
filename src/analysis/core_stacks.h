// core_stacks.h: the functions that stacks of a core file are in, and their names, by libdw.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analysis/core_file.h"

namespace magpie::analysis {

class CoreStacks {
 public:
  // Null: `error` says why. An empty program: the one that the file names.
  static std::unique_ptr<CoreStacks> open(const CoreFile& core, const std::string& program,
                                          std::string& error);
  ~CoreStacks();
  CoreStacks(const CoreStacks&) = delete;
  CoreStacks& operator=(const CoreStacks&) = delete;

  // Its address in the process.
  std::optional<std::uint64_t> address_of(std::string_view symbol);
  // What never changes is not in the core file, but in the program's own.
  bool read(std::uint64_t address, void* to, std::size_t bytes);

  using Frames = std::vector<std::uint64_t>;  // where they continue, innermost first
  struct Asked;                               // for what libdw calls back
  // Of a goroutine that is parked: `sp` is where its registers were saved. The number of the stack,
  // equal ones have the same; nothing: they are not in the file.
  std::optional<std::uint32_t> parked(std::uint64_t sp);
  std::uint32_t running(const ThreadRegisters& registers);
  const Frames& frames(std::uint32_t number) const { return *by_number_[number]; }
  std::uint64_t unwound() const { return unwound_; }

  // Function, and file and line if they are known.
  std::string place(std::uint64_t pc);
  std::string function(std::uint64_t pc);  // empty: unknown

 private:
  struct Dw;  // what is libdw's
  // A stack that was unwound: where its return addresses are, above sp.
  struct Known {
    std::uint32_t number;
    std::vector<std::uint32_t> slots;
  };

  explicit CoreStacks(const CoreFile& core);
  bool is_alike(const Known& known, std::uint64_t sp) const;
  bool fill_window(std::uint64_t sp);
  std::uint64_t in_window(std::uint64_t address) const;  // 0: it is not there
  std::uint64_t key_of(std::uint64_t pc, std::uint64_t sp, std::uint64_t frame) const;
  void unwind(const ThreadRegisters& registers, Frames& frames, std::vector<std::uint64_t>& sps);
  std::uint32_t number_of(Frames frames);

  const CoreFile& core_;
  std::unique_ptr<Dw> dw_;
  std::vector<char> window_;  // what lies above the sp of the goroutine that is looked at
  std::uint64_t window_at_ = 0;
  std::size_t window_bytes_ = 0;
  std::unordered_map<std::uint64_t, std::vector<Known>> known_;  // by key
  std::map<Frames, std::uint32_t> numbers_;
  std::vector<const Frames*> by_number_;
  std::map<std::uint64_t, std::string> places_;
  std::uint64_t unwound_ = 0;
};

}  // namespace magpie::analysis
