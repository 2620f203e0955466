#include "base/other_thread.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <ctime>

namespace magpie::base {

// The kernel derives the clock's number from the thread's.
std::int64_t cpu_ns_of(pid_t thread) {
  constexpr int kPerThreadScheduledTime = 6;
  auto clock =
      static_cast<clockid_t>((~static_cast<unsigned>(thread) << 3) | kPerThreadScheduledTime);
  timespec used{};
  if (clock_gettime(clock, &used) != 0) return 0;
  return used.tv_sec * 1'000'000'000 + used.tv_nsec;
}

namespace {

// The beginning of a file that the kernel keeps about the thread. False: there is none.
template <std::size_t size>
bool read_file_of(pid_t thread, const char* name, char (&text)[size]) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/self/task/%d/%s", static_cast<int>(thread), name);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  ssize_t length = read(file, text, size - 1);
  close(file);
  if (length <= 0) return false;
  text[length] = '\0';
  return true;
}

// 'R': runs or waits for a CPU; 'S': sleeps lightly; 'D': sleeps deeply. 0: not known.
char state_of(pid_t thread) {
  char text[128];
  if (!read_file_of(thread, "stat", text)) return '\0';
  const char* after_name = std::strrchr(text, ')');
  return after_name == nullptr || after_name[1] == '\0' ? '\0' : after_name[2];
}

}  // namespace

bool is_asleep_in_kernel(pid_t thread) { return state_of(thread) != 'R'; }

bool is_asleep_lightly(pid_t thread) {
  const char state = state_of(thread);
  return state != 'R' && state != 'D';
}

std::int64_t sleeps_of(pid_t thread) {
  char text[4096];
  if (!read_file_of(thread, "status", text)) return 0;
  const char* line = std::strstr(text, "\nvoluntary_ctxt_switches:");
  long long count = 0;
  if (line != nullptr) std::sscanf(line, "\nvoluntary_ctxt_switches: %lld", &count);
  return count;
}

}  // namespace magpie::base
