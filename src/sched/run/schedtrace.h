// schedtrace.h: MAGPIE_DEBUG=schedtrace=MS prints a line on stderr every MS milliseconds, field for
// field as Go prints it, with our own counters behind. scheddetail=1 adds a line per P, M and G.
#pragma once

#include <cstdint>

#include "sched/run/debug_options.h"

namespace magpie::sched {

// Sysmon only. Allocates nothing. The numbers of one line are not all of the same instant.
class Schedtrace {
 public:
  explicit Schedtrace(const DebugOptions& options)
      : every_ns_(options.schedtrace_ns), detail_(options.scheddetail) {}

  bool is_on() const { return every_ns_ != 0; }
  void print_if_due(std::int64_t now_ns);

 private:
  void print(std::int64_t since_start_ns) const;

  const std::int64_t every_ns_;
  const bool detail_;
  std::int64_t started_ns_ = 0;
  std::int64_t next_ns_ = 0;
};

// For a debugger: prints the state of the runtime, of every P and M and of a thousand Gs to stderr.
// The only lock that it takes is that of the records. (gdb) call (void)magpie_print_state()
extern "C" void magpie_print_state();

}  // namespace magpie::sched
