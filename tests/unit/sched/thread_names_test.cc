// What top -H, perf and debuggers call the runtime's threads.
#include <gtest/gtest.h>
#include <magpie/magpie.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace {

using namespace std::chrono_literals;

std::vector<std::string> names_of_threads() {
  std::vector<std::string> names;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(task.path() / "comm");
    std::string name;
    if (std::getline(file, name)) names.push_back(name);  // else the thread has just ended
  }
  return names;
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  for (const std::string& one : names) {
    if (one == name) return true;
  }
  return false;
}

std::string own_name() {
  char name[16] = {};
  prctl(PR_GET_NAME, name);
  return name;
}

TEST(ThreadNames, TellTheRuntimesThreadsApart) {
  std::string before = own_name();
  magpie::run(magpie::Options{.procs = 2}, [] {
    // A thread names itself when it begins. Goroutines that block make a second one.
    for (;;) {
      magpie::WaitGroup group;
      for (int i = 0; i < 2; ++i) group.go([] { magpie::blocking([] { usleep(1'000); }); });
      group.wait();
      std::vector<std::string> names = names_of_threads();
      if (has(names, "magpie-m1") && has(names, "magpie-sysmon") && has(names, "magpie-maker"))
        return;
    }
  });
  EXPECT_EQ(own_name(), before);
}

TEST(ThreadNames, TheThreadThatCalledRunKeepsTheProgramsName) {
  std::string before = own_name();
  magpie::run(magpie::Options{.procs = 1}, [&] {
    magpie::ThreadLock lock;
    std::string name = own_name();
    EXPECT_TRUE(name == before || name.starts_with("magpie-m")) << name;
    EXPECT_TRUE(has(names_of_threads(), before));
  });
}

}  // namespace
