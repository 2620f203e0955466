// symbols.h: what is at an address of the program's code.
//
//   place_of      function, file and line: by libdw if it is there (it is loaded when first
//                 needed), else by the dynamic linker. Allocates and takes locks. What it found is
//                 remembered. Throws std::bad_alloc.
//   module_of     file and offset only. Neither allocates nor locks: for signal handlers.
#pragma once

#include <cstdint>
#include <string>

namespace magpie::symbol {

struct Place {
  std::string function;  // empty: unknown
  std::string file;      // empty: unknown
  int line = 0;
  std::string module;
  std::uintptr_t offset = 0;
};

// `pc` is where a frame continues: the call is before it. The reference stays valid.
enum class Names { return_address, function };
const Place& place_of(std::uintptr_t pc, Names names = Names::return_address);

// In the child of a fork(): a thread that is not there may have been in place_of().
void forget();

struct Module {
  const char* path = nullptr;  // null: the address belongs to no module, or that cannot be told
  std::uintptr_t offset = 0;
};
Module module_of(std::uintptr_t pc);

}  // namespace magpie::symbol
