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

bool is_asleep_in_kernel(pid_t thread) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/self/task/%d/stat", static_cast<int>(thread));
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return true;
  char text[128];
  ssize_t length = read(file, text, sizeof text - 1);
  close(file);
  if (length <= 0) return true;
  text[length] = '\0';
  const char* after_name = std::strrchr(text, ')');
  return after_name == nullptr || after_name[1] == '\0' || after_name[2] != 'R';
}

}  // namespace magpie::base
