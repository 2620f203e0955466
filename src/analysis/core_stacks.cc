#include "analysis/core_stacks.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "analysis/code_name.h"

#if MAGPIE_HAS_LIBDW
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <gelf.h>
#endif

namespace magpie::analysis {

namespace {

constexpr std::size_t kMostFrames = 64;  // as in a live dump
constexpr std::size_t kPage = 4096;      // the next page is often a hole in the file, and costs
constexpr std::size_t kLeastWindow = 256;
constexpr std::size_t kWindow = kPage + kLeastWindow;
constexpr std::size_t kKeyFrames = 6;

std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  a = (a ^ b) * 0x9e3779b97f4a7c15;
  return a ^ a >> 32;
}

// Where context::swap() leaves the registers of a parked goroutine, above the saved sp, and where
// a call leaves its return address, below the sp of the caller.
#if defined(__x86_64__)
constexpr std::size_t kPcAt = 8, kFrameAt = 16, kSavedBytes = 24;
constexpr unsigned kSpNumber = 7, kFrameNumber = 6;
constexpr bool kHasReturnSlots = true;
#elif defined(__aarch64__)
constexpr std::size_t kPcAt = 8, kFrameAt = 16, kSavedBytes = 32;
constexpr unsigned kSpNumber = 31, kFrameNumber = 29;
constexpr bool kHasReturnSlots = false;
#endif

}  // namespace

#if MAGPIE_HAS_LIBDW

// What libdw asks while it unwinds one stack.
struct CoreStacks::Asked {
  const CoreFile* core = nullptr;
  ThreadRegisters registers;
  Frames* frames = nullptr;
  std::vector<std::uint64_t>* sps = nullptr;
};

struct CoreStacks::Dw {
  Dwfl* dwfl = nullptr;
  Elf* core = nullptr;
  Dwfl_Module* home = nullptr;  // that the library is in: the program, or a shared library
  Asked asked;

  ~Dw() {
    if (dwfl != nullptr) dwfl_end(dwfl);
    if (core != nullptr) elf_end(core);
  }
};

namespace {

// There is one thread at a time: the stack that is unwound.
pid_t next_thread(Dwfl*, void* asked, void** argument) {
  if (*argument != nullptr) return 0;
  *argument = asked;
  return 1;
}

bool get_thread(Dwfl*, pid_t, void* asked, void** argument) {
  *argument = asked;
  return true;
}

bool read_memory(Dwfl*, Dwarf_Addr address, Dwarf_Word* result, void* asked) {
  const std::optional<std::uint64_t> word =
      static_cast<CoreStacks::Asked*>(asked)->core->word(address);
  if (word) *result = *word;
  return word.has_value();
}

bool set_registers(Dwfl_Thread* thread, void* argument) {
  const ThreadRegisters& its = static_cast<CoreStacks::Asked*>(argument)->registers;
  if (!its.all.empty()) {
    if (!dwfl_thread_state_registers(thread, 0, static_cast<unsigned>(its.all.size()),
                                     its.all.data()))
      return false;
  } else {
    const Dwarf_Word frame = its.frame, sp = its.sp;
    if (!dwfl_thread_state_registers(thread, kFrameNumber, 1, &frame) ||
        !dwfl_thread_state_registers(thread, kSpNumber, 1, &sp))
      return false;
  }
  dwfl_thread_state_register_pc(thread, its.pc);
  return true;
}

constexpr Dwfl_Thread_Callbacks kThreads = {
    .next_thread = next_thread,
    .get_thread = get_thread,
    .memory_read = read_memory,
    .set_initial_registers = set_registers,
    .detach = nullptr,
    .thread_detach = nullptr,
};

int note_frame(Dwfl_Frame* frame, void* asked) {
  auto& its = *static_cast<CoreStacks::Asked*>(asked);
  Dwarf_Addr pc = 0;
  if (!dwfl_frame_pc(frame, &pc, nullptr) || pc == 0) return DWARF_CB_ABORT;
  Dwarf_Word sp = 0;
  if (dwfl_frame_reg(frame, kSpNumber, &sp) != 0) sp = 0;
  its.frames->push_back(pc);
  its.sps->push_back(sp);
  return its.frames->size() < kMostFrames ? DWARF_CB_OK : DWARF_CB_ABORT;
}

std::string given_program;  // the callback has no argument; there is one core file at a time

// For a module whose file is not where it was. libdw compares the build ids.
int find_elf(Dwfl_Module* module, void** user, const char* name, Dwarf_Addr base, char** file,
             Elf** elf) {
  const int fd = dwfl_build_id_find_elf(module, user, name, base, file, elf);
  if (fd >= 0 || given_program.empty()) return fd;
  const int given = open(given_program.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (given >= 0) *file = strdup(given_program.c_str());
  return given;
}

// 0: the module has no such symbol.
std::uint64_t address_in(Dwfl_Module* module, std::string_view wanted) {
  const int count = dwfl_module_getsymtab(module);
  for (int i = 1; i < count; ++i) {
    GElf_Sym entry;
    GElf_Addr address = 0;
    GElf_Word section = 0;
    const char* name =
        dwfl_module_getsym_info(module, i, &entry, &address, &section, nullptr, nullptr);
    if (name != nullptr && section != SHN_UNDEF && wanted == name) return address;
  }
  return 0;
}

// A process may have mapped the program's file as data too, and libdw takes that for another
// module. What the program writes to is in the core file for one of them only.
int find_home(Dwfl_Module* module, void**, const char*, Dwarf_Addr, void* its) {
  auto& [core, home] = *static_cast<std::pair<const CoreFile*, Dwfl_Module*>*>(its);
  const std::uint64_t address = address_in(module, "magpie_runtime");
  if (address == 0 || !core->word(address)) return DWARF_CB_OK;
  home = module;
  return DWARF_CB_ABORT;
}

std::string why() {
  const char* text = dwfl_errmsg(-1);
  return text != nullptr ? text : "libdw does not say why";
}

}  // namespace

CoreStacks::CoreStacks(const CoreFile& core)
    : core_(core), dw_(std::make_unique<Dw>()), window_(kWindow) {}
CoreStacks::~CoreStacks() = default;

std::unique_ptr<CoreStacks> CoreStacks::open(const CoreFile& core, const std::string& program,
                                             std::string& error) {
  static char* no_path = nullptr;
  static const Dwfl_Callbacks kCallbacks = {
      .find_elf = find_elf,
      .find_debuginfo = dwfl_standard_find_debuginfo,
      .section_address = nullptr,
      .debuginfo_path = &no_path,
  };
  std::unique_ptr<CoreStacks> stacks(new CoreStacks(core));
  Dw& dw = *stacks->dw_;
  elf_version(EV_CURRENT);
  dw.core = elf_begin(core.descriptor(), ELF_C_READ, nullptr);
  dw.dwfl = dwfl_begin(&kCallbacks);
  given_program = program;
  dwfl_report_begin(dw.dwfl);
  const int modules = dwfl_core_file_report(dw.dwfl, dw.core, nullptr);
  dwfl_report_end(dw.dwfl, nullptr, nullptr);
  dw.asked.core = &core;
  if (modules <= 0 || !dwfl_attach_state(dw.dwfl, dw.core, 1, &kThreads, &dw.asked)) {
    error = "the programs of the core file are not to be read: " + why();
    return nullptr;
  }
  std::pair<const CoreFile*, Dwfl_Module*> search{&core, nullptr};
  dwfl_getmodules(dw.dwfl, find_home, &search, 0);
  dw.home = search.second;
  if (dw.home != nullptr) return stacks;
  error = "no symbol magpie_runtime: the program " + core.program() +
          " does not use Magpie, was stripped, or is another one by now (--program)";
  return nullptr;
}

std::optional<std::uint64_t> CoreStacks::address_of(std::string_view symbol) {
  const std::uint64_t address = address_in(dw_->home, symbol);
  if (address == 0) return std::nullopt;
  return address;
}

bool CoreStacks::read(std::uint64_t address, void* to, std::size_t bytes) {
  if (core_.read(address, to, bytes) == bytes) return true;
  Dwfl_Module* module = dwfl_addrmodule(dw_->dwfl, address);
  GElf_Addr bias = 0;
  Elf* elf = module == nullptr ? nullptr : dwfl_module_getelf(module, &bias);
  std::size_t segments = 0;
  if (elf == nullptr || elf_getphdrnum(elf, &segments) != 0) return false;
  std::size_t file_bytes = 0;
  const char* file = elf_rawfile(elf, &file_bytes);
  for (std::size_t i = 0; i < segments && file != nullptr; ++i) {
    GElf_Phdr one;
    if (gelf_getphdr(elf, static_cast<int>(i), &one) == nullptr || one.p_type != PT_LOAD) continue;
    const std::uint64_t skipped = address - bias - one.p_vaddr;
    if (address - bias < one.p_vaddr || skipped > one.p_filesz || bytes > one.p_filesz - skipped)
      continue;
    if (one.p_offset > file_bytes || one.p_filesz > file_bytes - one.p_offset) continue;
    std::memcpy(to, file + one.p_offset + skipped, bytes);
    return true;
  }
  return false;
}

void CoreStacks::unwind(const ThreadRegisters& registers, Frames& frames,
                        std::vector<std::uint64_t>& sps) {
  ++unwound_;
  Asked& asked = dw_->asked;
  asked.registers = registers;
  asked.frames = &frames;
  asked.sps = &sps;
  (void)dwfl_getthread_frames(dw_->dwfl, 1, note_frame, &asked);
  if (!frames.empty()) return;
  frames.push_back(registers.pc);
  sps.push_back(registers.sp);
}

std::string CoreStacks::function(std::uint64_t pc) {
  Dwfl_Module* module = dwfl_addrmodule(dw_->dwfl, pc);
  const char* name = module == nullptr ? nullptr : dwfl_module_addrname(module, pc);
  return name == nullptr ? std::string() : demangled(name);
}

std::string CoreStacks::place(std::uint64_t pc) {
  auto [known, is_new] = places_.try_emplace(pc);
  if (!is_new) return known->second;
  std::string& text = known->second;
  Dwfl_Module* module = dwfl_addrmodule(dw_->dwfl, pc - 1);  // the call is before it
  text = function(pc - 1);
  if (text.empty()) {
    Dwarf_Addr start = 0;
    const char* path = module == nullptr ? nullptr
                                         : dwfl_module_info(module, nullptr, &start, nullptr,
                                                            nullptr, nullptr, nullptr, nullptr);
    char offset[32];
    std::snprintf(offset, sizeof offset, "+0x%llx", static_cast<unsigned long long>(pc - start));
    text = (path != nullptr ? path : "?") + std::string(offset);
  }
  Dwfl_Line* line = module == nullptr ? nullptr : dwfl_module_getsrc(module, pc - 1);
  int number = 0;
  const char* file =
      line == nullptr ? nullptr : dwfl_lineinfo(line, nullptr, &number, nullptr, nullptr, nullptr);
  if (file != nullptr) text += " (" + std::string(file) + ":" + std::to_string(number) + ")";
  return text;
}

#else

struct CoreStacks::Dw {};
CoreStacks::CoreStacks(const CoreFile& core) : core_(core) {}
CoreStacks::~CoreStacks() = default;
std::unique_ptr<CoreStacks> CoreStacks::open(const CoreFile&, const std::string&,
                                             std::string& error) {
  error = "this build cannot read core files: it was built without libdw (Debian: libdw-dev)";
  return nullptr;
}
std::optional<std::uint64_t> CoreStacks::address_of(std::string_view) { return std::nullopt; }
bool CoreStacks::read(std::uint64_t, void*, std::size_t) { return false; }
void CoreStacks::unwind(const ThreadRegisters&, Frames&, std::vector<std::uint64_t>&) {}
std::string CoreStacks::place(std::uint64_t) { return {}; }
std::string CoreStacks::function(std::uint64_t) { return {}; }

#endif

// False: there is less than the registers.
bool CoreStacks::fill_window(std::uint64_t sp) {
  window_at_ = sp;
  std::size_t wanted = kPage - sp % kPage;  // most parked stacks end in the page of their sp
  if (wanted < kLeastWindow) wanted += kPage;
  window_bytes_ = core_.read(sp, window_.data(), wanted);
  return window_bytes_ >= kSavedBytes;
}

std::uint64_t CoreStacks::in_window(std::uint64_t address) const {
  std::uint64_t value = 0;
  const std::uint64_t at = address - window_at_;
  if (address >= window_at_ && window_bytes_ >= sizeof value && at <= window_bytes_ - sizeof value)
    std::memcpy(&value, window_.data() + at, sizeof value);
  return value;
}

// By frame pointers, which the library has. Stacks that differ may have the same key.
std::uint64_t CoreStacks::key_of(std::uint64_t pc, std::uint64_t sp, std::uint64_t frame) const {
  std::uint64_t key = mixed(pc, 1);
  for (std::size_t i = 0; i < kKeyFrames && frame >= sp && frame % 8 == 0; ++i) {
    const std::uint64_t back = in_window(frame + 8);
    if (back == 0) break;
    key = mixed(mixed(key, back), frame - sp);
    const std::uint64_t outer = in_window(frame);
    if (outer <= frame) break;
    frame = outer;
  }
  return key;
}

bool CoreStacks::is_alike(const Known& known, std::uint64_t sp) const {
  const Frames& frames = *by_number_[known.number];
  for (std::size_t i = 1; i < frames.size(); ++i) {
    const std::uint64_t slot = sp + known.slots[i];
    std::uint64_t there = in_window(slot);
    if (there == 0) there = core_.word(slot).value_or(0);
    if (there != frames[i]) return false;
  }
  return true;
}

std::uint32_t CoreStacks::number_of(Frames frames) {
  auto [found, is_new] =
      numbers_.try_emplace(std::move(frames), static_cast<std::uint32_t>(by_number_.size()));
  if (is_new) by_number_.push_back(&found->first);
  return found->second;
}

std::optional<std::uint32_t> CoreStacks::parked(std::uint64_t sp) {
  if (!fill_window(sp)) return std::nullopt;
  ThreadRegisters registers;
  registers.pc = in_window(sp + kPcAt);
  registers.frame = in_window(sp + kFrameAt);
  registers.sp = sp + kSavedBytes;
  std::vector<Known>& alike = known_[key_of(registers.pc, sp, registers.frame)];
  for (const Known& known : alike)
    if (by_number_[known.number]->front() == registers.pc && is_alike(known, sp))
      return known.number;
  Frames frames;
  std::vector<std::uint64_t> sps;
  unwind(registers, frames, sps);
  Known made{0, {}};
  bool has_slots = kHasReturnSlots;
  for (std::uint64_t its : sps) {
    has_slots &= its > sp && its - sp < (std::uint64_t{1} << 31);
    made.slots.push_back(static_cast<std::uint32_t>(its - sp - 8));
  }
  for (std::size_t i = 1; i < frames.size(); ++i)
    has_slots = has_slots && core_.word(sp + made.slots[i]) == frames[i];
  made.number = number_of(std::move(frames));
  constexpr std::size_t kMostAlike = 64;  // recursion to different depths
  if (has_slots && alike.size() < kMostAlike) alike.push_back(made);
  return made.number;
}

std::uint32_t CoreStacks::running(const ThreadRegisters& registers) {
  Frames frames;
  std::vector<std::uint64_t> sps;
  unwind(registers, frames, sps);
  return number_of(std::move(frames));
}

}  // namespace magpie::analysis
