#include "trace/modules.h"

#include <elf.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "trace/meta.h"

namespace magpie::trace {
namespace {

std::string hexadecimal(const unsigned char* bytes, std::size_t count) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

std::size_t rounded(std::size_t bytes) { return (bytes + 3) & ~std::size_t{3}; }

// From the notes in one segment. Empty: there is none.
std::string build_id_in(const unsigned char* at, std::size_t bytes) {
  while (bytes >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, at, sizeof note);
    std::size_t whole = sizeof note + rounded(note.n_namesz) + rounded(note.n_descsz);
    if (whole > bytes) return {};
    const unsigned char* name = at + sizeof note;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0)
      return hexadecimal(name + rounded(note.n_namesz), note.n_descsz);
    at += whole;
    bytes -= whole;
  }
  return {};
}

int add_object(dl_phdr_info* info, std::size_t, void* out) {
  std::string path = info->dlpi_name;
  if (path.empty()) path = program_path();
  std::string build_id;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE || !build_id.empty()) continue;
    build_id = build_id_in(reinterpret_cast<const unsigned char*>(info->dlpi_addr + segment.p_vaddr),
                           segment.p_memsz);
  }
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    std::uint64_t start = info->dlpi_addr + segment.p_vaddr;
    append_module(*static_cast<std::string*>(out), start, start + segment.p_memsz, segment.p_offset,
                  path, build_id);
  }
  return 0;
}

}  // namespace

std::string encode_modules() {
  std::string out;
  dl_iterate_phdr(add_object, &out);
  return out;
}

std::string program_path() {
  char path[4096];
  ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  return length > 0 ? std::string(path, static_cast<std::size_t>(length)) : std::string();
}

}  // namespace magpie::trace
