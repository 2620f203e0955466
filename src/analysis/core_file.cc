#include "analysis/core_file.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/procfs.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

namespace magpie::analysis {

namespace {

#if defined(__x86_64__)
constexpr unsigned kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr unsigned kMachine = EM_AARCH64;
#endif

constexpr std::size_t kMostNoteBytes = std::size_t{64} << 20;

ThreadRegisters registers_of(const elf_prstatus& status) {
  ThreadRegisters found;
  const auto& reg = status.pr_reg;
#if defined(__x86_64__)
  // The order of the kernel is not that of DWARF.
  enum { r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8, rax, rcx, rdx, rsi, rdi, orig, rip };
  constexpr int kRsp = 19;
  found = {reg[rip], reg[kRsp], reg[rbp], {}};
  for (int number : {int{rax}, int{rdx}, int{rcx}, int{rbx}, int{rsi}, int{rdi}, int{rbp}, kRsp,
                     int{r8}, int{r9}, int{r10}, int{r11}, int{r12}, int{r13}, int{r14}, int{r15}})
    found.all.push_back(reg[number]);
#elif defined(__aarch64__)
  found = {reg[32], reg[31], reg[29], {}};
  for (int i = 0; i < 32; ++i) found.all.push_back(reg[i]);
#endif
  return found;
}

}  // namespace

CoreFile::~CoreFile() { close(fd_); }

std::unique_ptr<CoreFile> CoreFile::open(const std::string& path, std::string& error) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat status;
  if (fd < 0 || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    error = path + ": " + (fd < 0 ? std::strerror(errno) : "is not a file");
    if (fd >= 0) close(fd);
    return nullptr;
  }
  std::unique_ptr<CoreFile> core(new CoreFile(fd));
  core->file_bytes_ = static_cast<std::uint64_t>(status.st_size);
  (void)posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);  // what lies behind a stack is a hole
  if (core->find_segments(error)) return core;
  error = path + ": " + error;
  return nullptr;
}

bool CoreFile::read_file(std::uint64_t place, void* to, std::size_t bytes) const {
  auto* at = static_cast<char*>(to);
  while (bytes != 0) {
    const ssize_t got = pread(fd_, at, bytes, static_cast<off_t>(place));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    place += static_cast<std::uint64_t>(got);
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

bool CoreFile::find_segments(std::string& error) {
  ElfW(Ehdr) header{};
  if (!read_file(0, &header, sizeof header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_type != ET_CORE) {
    error = "is no core file";
    return false;
  }
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != kMachine ||
      header.e_phentsize != sizeof(ElfW(Phdr))) {
    error = "is the core file of another kind of machine";
    return false;
  }
  std::uint64_t count = header.e_phnum;
  if (count == PN_XNUM) {  // there are more than the field can say: the first section tells
    ElfW(Shdr) first{};
    if (!read_file(header.e_shoff, &first, sizeof first)) first.sh_info = 0;
    count = first.sh_info;
  }
  if (header.e_phoff > file_bytes_ || count > (file_bytes_ - header.e_phoff) / sizeof(ElfW(Phdr))) {
    error = "is cut off";
    return false;
  }
  std::vector<ElfW(Phdr)> all(count);
  if (!read_file(header.e_phoff, all.data(), count * sizeof(ElfW(Phdr)))) {
    error = "is cut off";
    return false;
  }
  std::vector<char> notes;
  for (const ElfW(Phdr) & one : all) {
    if (one.p_offset >= file_bytes_) continue;
    const std::uint64_t bytes = std::min<std::uint64_t>(one.p_filesz, file_bytes_ - one.p_offset);
    if (one.p_type == PT_LOAD && bytes != 0)
      segments_.push_back({one.p_vaddr, bytes, one.p_offset});
    if (one.p_type != PT_NOTE || !notes.empty()) continue;
    notes.resize(std::min<std::uint64_t>(bytes, kMostNoteBytes));
    if (!read_file(one.p_offset, notes.data(), notes.size())) notes.clear();
  }
  std::ranges::sort(segments_, {}, &Segment::address);
  read_notes(notes);
  return true;
}

// The thread that the signal met comes first, then the others.
void CoreFile::read_notes(const std::vector<char>& notes) {
  std::string_view files;
  std::size_t at = 0;
  while (at + sizeof(ElfW(Nhdr)) <= notes.size()) {
    ElfW(Nhdr) note{};
    std::memcpy(&note, notes.data() + at, sizeof note);
    const std::size_t content = at + sizeof note + (std::size_t{note.n_namesz} + 3) / 4 * 4;
    if (content > notes.size() || note.n_descsz > notes.size() - content) break;
    const char* text = notes.data() + content;
    if (note.n_type == NT_PRSTATUS && note.n_descsz >= sizeof(elf_prstatus)) {
      elf_prstatus status;
      std::memcpy(&status, text, sizeof status);
      threads_.try_emplace(status.pr_pid, registers_of(status));
    } else if (note.n_type == NT_PRPSINFO && note.n_descsz >= sizeof(elf_prpsinfo)) {
      elf_prpsinfo info;
      std::memcpy(&info, text, sizeof info);
      pid_ = info.pr_pid;
    } else if (note.n_type == NT_AUXV) {
      for (std::size_t i = 0; i + 16 <= note.n_descsz; i += 16) {
        std::uint64_t pair[2];
        std::memcpy(pair, text + i, sizeof pair);
        if (pair[0] == AT_ENTRY) entry_ = pair[1];
      }
    } else if (note.n_type == NT_FILE) {
      files = {text, note.n_descsz};
    }
    at = content + (std::size_t{note.n_descsz} + 3) / 4 * 4;
  }
  note_files(files.data(), files.size());
}

// The program is the file that the entry point lies in. The note: how many, the size of a page; for
// each its beginning, its end, its offset; then the names.
void CoreFile::note_files(const char* text, std::size_t bytes) {
  constexpr std::size_t kWord = 8;
  if (bytes < 2 * kWord) return;
  std::uint64_t count;
  std::memcpy(&count, text, kWord);
  if (count > (bytes - 2 * kWord) / (3 * kWord)) return;
  const char* name = text + 2 * kWord + count * 3 * kWord;
  const char* const end = text + bytes;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::size_t length = strnlen(name, static_cast<std::size_t>(end - name));
    if (name + length == end) return;
    std::uint64_t range[2];
    std::memcpy(range, text + 2 * kWord + i * 3 * kWord, sizeof range);
    if (entry_ >= range[0] && entry_ < range[1]) program_.assign(name, length);
    name += length + 1;
  }
}

const CoreFile::Segment* CoreFile::segment_of(std::uint64_t address) const {
  if (last_ != nullptr && address >= last_->address && address - last_->address < last_->bytes)
    return last_;
  auto after = std::ranges::upper_bound(segments_, address, {}, &Segment::address);
  if (after == segments_.begin()) return nullptr;
  const Segment& found = *std::prev(after);
  if (address - found.address >= found.bytes) return nullptr;
  return last_ = &found;
}

std::size_t CoreFile::read(std::uint64_t address, void* to, std::size_t most) const {
  std::size_t done = 0;
  while (done != most) {
    const Segment* segment = segment_of(address + done);
    if (segment == nullptr) break;
    const std::uint64_t skipped = address + done - segment->address;
    const auto bytes =
        static_cast<std::size_t>(std::min<std::uint64_t>(most - done, segment->bytes - skipped));
    if (!read_file(segment->place + skipped, static_cast<char*>(to) + done, bytes)) break;
    done += bytes;
  }
  return done;
}

std::optional<std::uint64_t> CoreFile::word(std::uint64_t address) const {
  std::uint64_t value;
  if (read(address, &value, sizeof value) != sizeof value) return std::nullopt;
  return value;
}

}  // namespace magpie::analysis
