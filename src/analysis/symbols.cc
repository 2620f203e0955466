#include "analysis/symbols.h"

#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "analysis/code_name.h"
#include "analysis/elf_file.h"

namespace magpie::analysis {

namespace {

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// A trace may come from anybody, and names any path: opening a pipe would wait for its writer, and
// opening a device may have effects.
bool is_plain_file(const std::string& path) {
  std::error_code unknown;
  return std::filesystem::is_regular_file(path, unknown);
}

// Of the trace's program, or library, as it was recorded.
bool is_same_file(const trace::Module& module) {
  return is_plain_file(module.path) &&
         (module.build_id.empty() || elf_build_id(module.path) == module.build_id);
}

}  // namespace

Symbols::Symbols(std::vector<trace::Module> modules) : modules_(std::move(modules)) {}
Symbols::~Symbols() = default;

std::unique_ptr<Symbols> Symbols::make(std::vector<trace::Module> modules) {
  return std::unique_ptr<Symbols>(new Symbols(std::move(modules)));
}

const trace::Module* Symbols::module_of(std::uint64_t pc) const {
  for (const trace::Module& module : modules_)
    if (pc >= module.start && pc < module.end) return &module;
  return nullptr;
}

Symbol Symbols::find_locked(std::uint64_t pc) {
  auto [known, is_new] = known_.try_emplace(pc);
  if (!is_new) return known->second;
  const trace::Module* module = module_of(pc);
  if (module == nullptr || module->path.empty()) return {};
  auto [file, is_first] = files_.try_emplace(module->path);
  if (is_first && is_same_file(*module)) file->second = open_symbol_file(module->path);
  if (file->second == nullptr) return {};
  const std::optional<std::uint64_t> address =
      elf_address(module->path, pc - module->start + module->offset);
  if (address) {
    known->second = file->second->find(*address);
    known->second.function = user_code_name(known->second.function);
  }
  return known->second;
}

Symbol Symbols::find(std::uint64_t pc) {
  std::lock_guard lock(mutex_);
  return find_locked(pc);
}

std::string Symbols::text(std::uint64_t pc) {
  if (pc == 0) return "unknown";
  std::lock_guard lock(mutex_);
  const Symbol symbol = find_locked(pc);
  if (symbol.function.empty()) {
    char number[64];
    const trace::Module* module = module_of(pc);
    if (module == nullptr) {
      std::snprintf(number, sizeof number, "0x%" PRIx64, pc);
      return number;
    }
    std::snprintf(number, sizeof number, "+0x%" PRIx64, pc - module->start + module->offset);
    return base_name(module->path) + number;
  }
  if (symbol.file.empty()) return symbol.function;
  return symbol.function + " (" + base_name(symbol.file) + ":" + std::to_string(symbol.line) + ")";
}

}  // namespace magpie::analysis
