// symbols.h: from program counters to names, outside the process that they came from.
//
// The trace says which file was mapped where, and its build id. A file that changed since is not asked:
// its names would be wrong. With libdw (elfutils) in this build, libdw reads it; otherwise the program
// addr2line does.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "trace/reader.h"

namespace magpie::analysis {

struct Symbol {
  std::string function;  // demangled; empty: not known
  std::string file;      // empty: not known
  int line = 0;
};

// Reads one file. The address is one of the ELF file's own.
class SymbolFile {
 public:
  virtual ~SymbolFile() = default;
  virtual Symbol find(std::uint64_t address) = 0;
};
std::unique_ptr<SymbolFile> open_symbol_file(const std::string& path);

class Symbols {
 public:
  static std::unique_ptr<Symbols> make(std::vector<trace::Module> modules);
  ~Symbols();

  Symbol find(std::uint64_t pc);
  // "function (file:line)", without what is not known; "file+0x12" when there is no name at all.
  std::string text(std::uint64_t pc);

 private:
  explicit Symbols(std::vector<trace::Module> modules);
  Symbol find_locked(std::uint64_t pc);
  const trace::Module* module_of(std::uint64_t pc) const;

  std::mutex mutex_;
  // Guarded by mutex_.
  std::vector<trace::Module> modules_;
  std::map<std::string, std::unique_ptr<SymbolFile>> files_;  // null: changed, or not there
  std::map<std::uint64_t, Symbol> known_;
};

}  // namespace magpie::analysis
