// layout.h: where a debugger finds the parts of G, M, P and the queues.
//
// Optimised builds have no debug information about types. So the library carries a table of names
// and numbers, which debugger/magpie-gdb.py reads from the program or from a core file: offsets in
// bytes, sizes, and what the values of enumerations mean. A name is "Type.part". The table ends
// with an empty name. The script asks for names, so entries may come and go.
#pragma once

#include <cstdint>

namespace magpie::sched {

struct LayoutEntry {
  char name[44];
  std::uint32_t value;
};

// The table, magpie_layout. The runtime holds it, so that every program has it.
const LayoutEntry* layout_for_debuggers();

}  // namespace magpie::sched
