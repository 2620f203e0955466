#include "analysis/elf_file.h"

#include <elf.h>
#include <link.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <vector>

namespace magpie::analysis {

namespace {

std::vector<ElfW(Phdr)> segments_of(std::ifstream& file) {
  ElfW(Ehdr) header{};
  file.read(reinterpret_cast<char*>(&header), sizeof header);
  if (!file || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_phentsize != sizeof(ElfW(Phdr)))
    return {};
  std::vector<ElfW(Phdr)> segments(header.e_phnum);
  file.seekg(static_cast<std::streamoff>(header.e_phoff));
  file.read(reinterpret_cast<char*>(segments.data()),
            static_cast<std::streamsize>(segments.size() * sizeof(ElfW(Phdr))));
  if (!file) return {};
  return segments;
}

std::string build_id_in(const std::vector<char>& notes) {
  std::size_t at = 0;
  while (at + sizeof(ElfW(Nhdr)) <= notes.size()) {
    ElfW(Nhdr) note{};
    std::memcpy(&note, notes.data() + at, sizeof note);
    const std::size_t name = at + sizeof note;
    const std::size_t content = name + (std::size_t{note.n_namesz} + 3) / 4 * 4;
    if (content > notes.size() || note.n_descsz > notes.size() - content) return {};
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
        std::memcmp(notes.data() + name, "GNU", 4) == 0) {
      std::string text;
      for (std::size_t i = 0; i < note.n_descsz; ++i) {
        char digits[3];
        std::snprintf(digits, sizeof digits, "%02x",
                      static_cast<unsigned char>(notes[content + i]));
        text += digits;
      }
      return text;
    }
    at = content + (std::size_t{note.n_descsz} + 3) / 4 * 4;
  }
  return {};
}

}  // namespace

std::optional<std::uint64_t> elf_address(const std::string& path, std::uint64_t offset) {
  std::ifstream file(path, std::ios::binary);
  for (const ElfW(Phdr) & segment : segments_of(file))
    if (segment.p_type == PT_LOAD && offset >= segment.p_offset &&
        offset - segment.p_offset < segment.p_filesz)
      return segment.p_vaddr + (offset - segment.p_offset);
  return std::nullopt;
}

std::string elf_build_id(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  for (const ElfW(Phdr) & segment : segments_of(file)) {
    if (segment.p_type != PT_NOTE || segment.p_filesz > 65536) continue;
    std::vector<char> notes(segment.p_filesz);
    file.seekg(static_cast<std::streamoff>(segment.p_offset));
    file.read(notes.data(), static_cast<std::streamsize>(notes.size()));
    if (!file) return {};
    if (std::string id = build_id_in(notes); !id.empty()) return id;
  }
  return {};
}

}  // namespace magpie::analysis
