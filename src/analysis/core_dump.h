// core_dump.h: the goroutines of a core file, as text, equal stacks folded.
//
// Where things are in the process stands in the program itself: the table of sched/run/layout.h. A
// parked goroutine's registers lie on its stack. libdw unwinds the first stack of each kind. If
// another has the same return addresses at the same places, it need not be unwound: so a million
// goroutines take a second or two, most of it for reading their stacks from the file.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

namespace magpie::analysis {

struct CoreDump {
  std::uint64_t goroutines = 0;
  std::uint64_t groups = 0;
  std::uint64_t unwound = 0;  // stacks for which libdw was asked
};

// Writes all goroutines to `out`. An empty program: the one that the file names. Throws
// std::runtime_error with what is missing.
CoreDump dump_core(const std::string& path, const std::string& program, std::ostream& out);

}  // namespace magpie::analysis
