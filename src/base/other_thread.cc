#include "base/other_thread.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/syscall.h>
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

// It uses a CPU now, or has done so during the pause. Without the pause a thread that shares the
// caller's CPU would never be seen.
bool is_seen_running(pid_t thread) {
  constexpr timespec kPause{.tv_sec = 0, .tv_nsec = 50'000};
  const std::int64_t before = cpu_ns_of(thread);
  nanosleep(&kPause, nullptr);
  return cpu_ns_of(thread) != before;
}

}  // namespace

Doing doing_of(pid_t thread) {
  char text[128];
  if (!read_file_of(thread, "stat", text)) return Doing::not_told;
  const char* after_name = std::strrchr(text, ')');
  if (after_name == nullptr || after_name[1] == '\0') return Doing::not_told;
  switch (after_name[2]) {
    case 'R':
      return Doing::runs;
    case 'D':
      return Doing::sleeps_deeply;
    default:
      return Doing::sleeps;
  }
}

bool is_asleep_in_kernel(pid_t thread) {
  const Doing doing = doing_of(thread);
  return doing == Doing::not_told ? !is_seen_running(thread) : doing != Doing::runs;
}

bool is_asleep_lightly(pid_t thread) { return doing_of(thread) == Doing::sleeps; }

std::uintptr_t lock_waited_for(pid_t thread) {
  char text[128];  // the number of the system call, and its arguments
  long call = 0;
  unsigned long address = 0, operation = 0;
  bool is_told = read_file_of(thread, "syscall", text) &&
                 std::sscanf(text, "%ld %lx %lx", &call, &address, &operation) == 3;
  bool waits = is_told && call == SYS_futex && (operation & FUTEX_CMD_MASK) == FUTEX_WAIT;
  return waits ? address : 0;
}

std::int64_t sleeps_of(pid_t thread) {
  char text[4096];
  if (!read_file_of(thread, "status", text)) return -1;
  const char* line = std::strstr(text, "\nvoluntary_ctxt_switches:");
  long long count = -1;
  if (line != nullptr) std::sscanf(line, "\nvoluntary_ctxt_switches: %lld", &count);
  return count;
}

}  // namespace magpie::base
