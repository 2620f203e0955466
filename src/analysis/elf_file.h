// elf_file.h: what is needed of an ELF file to ask others about it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace magpie::analysis {

// The address, as the file numbers them, of the byte at `offset` of the file.
std::optional<std::uint64_t> elf_address(const std::string& path, std::uint64_t offset);

// Its build id, in hexadecimal; empty: it has none, or is no ELF file.
std::string elf_build_id(const std::string& path);

}  // namespace magpie::analysis
