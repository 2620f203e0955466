// symbol_file.cc: names by libdw, or by the program addr2line.

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "analysis/code_name.h"
#include "analysis/symbols.h"

#if MAGPIE_HAS_LIBDW
#include <elfutils/libdwfl.h>
#endif

extern char** environ;

namespace magpie::analysis {

namespace {

#if MAGPIE_HAS_LIBDW

class LibdwFile final : public SymbolFile {
 public:
  static std::unique_ptr<SymbolFile> open(const std::string& path) {
    static char* no_path = nullptr;
    static const Dwfl_Callbacks callbacks = {
        .find_elf = dwfl_build_id_find_elf,
        .find_debuginfo = dwfl_standard_find_debuginfo,
        .section_address = dwfl_offline_section_address,
        .debuginfo_path = &no_path,
    };
    Dwfl* dwfl = dwfl_begin(&callbacks);
    if (dwfl == nullptr) return nullptr;
    dwfl_report_begin(dwfl);
    Dwfl_Module* module = dwfl_report_elf(dwfl, path.c_str(), path.c_str(), -1, 0, true);
    dwfl_report_end(dwfl, nullptr, nullptr);
    if (module == nullptr) {
      dwfl_end(dwfl);
      return nullptr;
    }
    return std::unique_ptr<SymbolFile>(new LibdwFile(dwfl, module));
  }

  ~LibdwFile() override { dwfl_end(dwfl_); }

  Symbol find(std::uint64_t address) override {
    Symbol symbol;
    if (const char* name = dwfl_module_addrname(module_, address))
      symbol.function = demangled(name);
    look_up_line(address, symbol);
    if (!is_ours(symbol.file)) return symbol;
    // The runtime's function that starts the user's, which was compiled into it: its first line
    // that is not ours.
    GElf_Off offset = 0;
    GElf_Sym elf_symbol{};
    dwfl_module_addrinfo(module_, address, &offset, &elf_symbol, nullptr, nullptr, nullptr);
    const std::uint64_t size = std::min<std::uint64_t>(elf_symbol.st_size, 65536);
    for (std::uint64_t i = 0; i < size; ++i) {
      Symbol inside;
      look_up_line(address - offset + i, inside);
      if (inside.file.empty() || is_ours(inside.file) ||
          inside.file.find("/c++/") != std::string::npos)
        continue;
      symbol.file = inside.file;
      symbol.line = inside.line;
      break;
    }
    return symbol;
  }

 private:
  static bool is_ours(const std::string& file) {
    return file.find("/magpie/detail/") != std::string::npos ||
           file.find("include/magpie/") != std::string::npos;
  }
  void look_up_line(std::uint64_t address, Symbol& symbol) {
    Dwfl_Line* at = dwfl_module_getsrc(module_, address);
    if (at == nullptr) return;
    if (const char* file = dwfl_lineinfo(at, nullptr, &symbol.line, nullptr, nullptr, nullptr))
      symbol.file = file;
  }

  LibdwFile(Dwfl* dwfl, Dwfl_Module* module) : dwfl_(dwfl), module_(module) {}
  Dwfl* dwfl_;
  Dwfl_Module* module_;
};

#else

// One run of addr2line for each address: there are few spawn sites.
class Addr2lineFile final : public SymbolFile {
 public:
  explicit Addr2lineFile(const std::string& path) : path_(path) {}

  Symbol find(std::uint64_t address) override {
    char number[32];
    std::snprintf(number, sizeof number, "0x%" PRIx64, address);
    const std::string answer = ask(number);
    Symbol symbol;
    const std::size_t line_end = answer.find('\n');
    if (line_end == std::string::npos) return symbol;
    symbol.function = answer.substr(0, line_end);
    if (symbol.function == "??") symbol.function.clear();
    const std::string where =
        answer.substr(line_end + 1, answer.find('\n', line_end + 1) - line_end - 1);
    const std::size_t colon = where.rfind(':');
    if (colon == std::string::npos || where[0] == '?') return symbol;
    symbol.file = where.substr(0, colon);
    symbol.line = std::atoi(where.c_str() + colon + 1);
    return symbol;
  }

 private:
  std::string ask(const char* address) const {
    int ends[2];
    if (pipe(ends) != 0) return {};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    const char* arguments[] = {"addr2line", "-f", "-C", "-e", path_.c_str(), address, nullptr};
    pid_t child = 0;
    const int failed = posix_spawnp(&child, "addr2line", &actions, nullptr,
                                    const_cast<char**>(arguments), environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    std::string answer;
    char buffer[4096];
    for (ssize_t got; failed == 0 && (got = read(ends[0], buffer, sizeof buffer)) > 0;)
      answer.append(buffer, static_cast<std::size_t>(got));
    close(ends[0]);
    if (failed == 0) waitpid(child, nullptr, 0);
    return answer;
  }

  std::string path_;
};

#endif

}  // namespace

std::unique_ptr<SymbolFile> open_symbol_file(const std::string& path) {
#if MAGPIE_HAS_LIBDW
  return LibdwFile::open(path);
#else
  return std::make_unique<Addr2lineFile>(path);
#endif
}

}  // namespace magpie::analysis
