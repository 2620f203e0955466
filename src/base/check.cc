#include "base/check.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace magpie::base {
namespace {

// atomic, published: by the program
std::atomic<LogHook> log_hook{nullptr};

// vsnprintf into a fixed buffer allocates nothing for the conversions used here (%s %d %u %lu %zu
// %p).
void print_line(const char* format, va_list arguments) {
  char line[1024];
  int used = std::snprintf(line, sizeof line, "magpie: ");
  int added = std::vsnprintf(line + used, sizeof line - 1 - static_cast<std::size_t>(used), format,
                             arguments);
  std::size_t length = static_cast<std::size_t>(used + (added > 0 ? added : 0));
  if (length > sizeof line - 2) length = sizeof line - 2;
  if (LogHook hook = log_hook.load(std::memory_order_acquire)) return hook({line, length});
  line[length++] = '\n';
  [[maybe_unused]] ssize_t written = ::write(STDERR_FILENO, line, length);
}

}  // namespace

LogHook set_log_hook(LogHook hook) { return log_hook.exchange(hook, std::memory_order_acq_rel); }

void fatal(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  print_line(format, arguments);
  va_end(arguments);
  std::abort();
}

void warn(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  print_line(format, arguments);
  va_end(arguments);
}

void check_failed(const char* fact, const char* file, int line) {
  fatal("internal error: expected %s at %s:%d; this is a bug in magpie, please report it", fact,
        file, line);
}

}  // namespace magpie::base
