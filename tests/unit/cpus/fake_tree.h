// fake_tree.h: a directory in /tmp that plays the root of the file system, for the cpus tests.
//
// It holds what the kernel would show: /proc/self/cgroup, /proc/self/mountinfo and cgroup files.

#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace magpie::cpus {

class FakeTree {
 public:
  FakeTree() {
    std::string name = (std::filesystem::temp_directory_path() / "magpie_cpus_XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) ADD_FAILURE() << "no temporary directory: " << name;
    root_ = name;
  }
  ~FakeTree() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  FakeTree(const FakeTree&) = delete;
  FakeTree& operator=(const FakeTree&) = delete;

  const std::string& root() const { return root_; }

  // `path` as seen from the fake root, for example "/sys/fs/cgroup/app/cpu.max".
  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
  }
  void remove(const std::string& path) { std::filesystem::remove_all(root_ + path); }

  void set_cgroup(const std::string& text) { write("/proc/self/cgroup", text); }
  void set_mountinfo(const std::string& text) { write("/proc/self/mountinfo", text); }

  // A v1 quota and its period in `directory`.
  void write_v1(const std::string& directory, const std::string& quota, const std::string& period) {
    write(directory + "/cpu.cfs_quota_us", quota + "\n");
    write(directory + "/cpu.cfs_period_us", period + "\n");
  }

 private:
  std::string root_;
};

// Lines of mountinfo, as the kernel writes them. The ids are such that no mount covers another.
inline std::string v2_mount(const std::string& root, const std::string& point) {
  return "35 24 0:30 " + root + " " + point +
         " rw,nosuid,nodev shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
}
inline std::string v1_mount(const std::string& root, const std::string& point,
                            const std::string& controllers) {
  return "33 25 0:29 " + root + " " + point +
         " rw,nosuid,nodev shared:8 master:2 - cgroup cgroup rw," + controllers + "\n";
}

}  // namespace magpie::cpus
