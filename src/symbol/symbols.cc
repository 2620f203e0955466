#include "symbol/symbols.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#if __has_include(<elfutils/libdwfl.h>)
#include <elfutils/libdwfl.h>
#define MAGPIE_LIBDW 1
#endif

namespace magpie::symbol {
namespace {

std::string demangled(const char* name) {
  int status = 0;
  std::unique_ptr<char, decltype(&std::free)> readable(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), std::free);
  return readable ? readable.get() : name;
}

#if defined(MAGPIE_LIBDW)

// libdw, loaded when first needed: the library does not depend on it.
class Libdw {
 public:
  Libdw() {
    void* library = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return;
    is_there_ =
        find(library, "dwfl_begin", begin_) && find(library, "dwfl_end", end_) &&
        find(library, "dwfl_linux_proc_report", report_) &&
        find(library, "dwfl_report_end", report_end_) &&
        find(library, "dwfl_addrmodule", module_) && find(library, "dwfl_module_addrname", name_) &&
        find(library, "dwfl_module_getsrc", source_) && find(library, "dwfl_lineinfo", line_) &&
        find(library, "dwfl_linux_proc_find_elf", callbacks_.find_elf) &&
        find(library, "dwfl_build_id_find_debuginfo", callbacks_.find_debuginfo);
    if (is_there_) read_modules();
  }

  void look_up(std::uintptr_t address, Place& place) {
    if (session_ == nullptr) return;
    Dwfl_Module* module = module_(session_, address);
    if (module == nullptr) {  // perhaps it was loaded since
      read_modules();
      if (session_ != nullptr) module = module_(session_, address);
    }
    if (module == nullptr) return;
    if (const char* name = name_(module, address)) place.function = demangled(name);
    Dwfl_Line* line = source_(module, address);
    if (line == nullptr) return;
    if (const char* file = line_(line, nullptr, &place.line, nullptr, nullptr, nullptr))
      place.file = file;
  }

 private:
  template <class F>
  static bool find(void* library, const char* name, F& function) {
    function = reinterpret_cast<F>(dlsym(library, name));
    return function != nullptr;
  }

  void read_modules() {
    if (session_ != nullptr) end_(session_);
    session_ = begin_(&callbacks_);
    if (session_ == nullptr) return;
    if (report_(session_, getpid()) == 0 && report_end_(session_, nullptr, nullptr) == 0) return;
    end_(session_);
    session_ = nullptr;
  }

  bool is_there_ = false;
  Dwfl* session_ = nullptr;
  Dwfl_Callbacks callbacks_ = {};
  decltype(&dwfl_begin) begin_ = nullptr;
  decltype(&dwfl_end) end_ = nullptr;
  decltype(&dwfl_linux_proc_report) report_ = nullptr;
  decltype(&dwfl_report_end) report_end_ = nullptr;
  decltype(&dwfl_addrmodule) module_ = nullptr;
  decltype(&dwfl_module_addrname) name_ = nullptr;
  decltype(&dwfl_module_getsrc) source_ = nullptr;
  decltype(&dwfl_lineinfo) line_ = nullptr;
};

#else

struct Libdw {
  static void look_up(std::uintptr_t, Place&) {}
};

#endif

struct Known {
  Libdw libdw;
  std::map<std::pair<std::uintptr_t, Names>, Place> places;  // its nodes stay where they are
};

constinit std::mutex mutex;
// Never destroyed: threads may dump while the program ends. Guarded by mutex.
constinit Known* known = nullptr;

void look_up_exported(std::uintptr_t address, Place& place) {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(address), &info) == 0) return;
  if (place.function.empty() && info.dli_sname != nullptr)
    place.function = demangled(info.dli_sname);
  if (info.dli_fname != nullptr) place.module = info.dli_fname;
  place.offset = address - reinterpret_cast<std::uintptr_t>(info.dli_fbase);
}

}  // namespace

const Place& place_of(std::uintptr_t pc, Names names) {
  std::lock_guard hold(mutex);
  if (known == nullptr) known = new Known;
  auto at = known->places.find({pc, names});
  if (at != known->places.end()) return at->second;
  Place place;  // noted once it is whole: memory may run out
  std::uintptr_t address = names == Names::return_address ? pc - 1 : pc;
  known->libdw.look_up(address, place);
  look_up_exported(address, place);
  if (names == Names::return_address && place.offset != 0) ++place.offset;
  return known->places.emplace(std::pair(pc, names), std::move(place)).first->second;
}

// What another thread was changing stays as it is.
void forget() {
  new (&mutex) std::mutex;
  known = nullptr;
}

Module module_of(std::uintptr_t pc) {
#if defined(DLFO_STRUCT_HAS_EH_DBASE)  // glibc 2.35 and newer
  dl_find_object found;
  if (_dl_find_object(reinterpret_cast<void*>(pc), &found) != 0) return {};
  const char* path = found.dlfo_link_map->l_name;
  // The program itself has no name there.
  return {*path != '\0' ? path : program_invocation_name,
          pc - reinterpret_cast<std::uintptr_t>(found.dlfo_map_start)};
#else
  (void)pc;
  return {};
#endif
}

}  // namespace magpie::symbol
