// limit_files.h: which files hold the CPU quotas that apply to this process.
//
// A process sits in one directory of a cgroup tree, and every directory from there up to the root
// may limit it. Two texts of the kernel are needed to find them:
//
//     /proc/self/cgroup       where we sit:           0::/app/web          (v2)
//                                                     4:cpu,cpuacct:/app   (v1, the `cpu` tree)
//     /proc/self/mountinfo    where trees are seen:   root /app, mounted at /sys/fs/cgroup
//
// The mount's root is the directory of the tree that shows up at the mount point. So what the
// mount's root and our path have in common is cut off, and the rest is walked:
//
//     path /app/web, root /      ->  <mount>/app/web   <mount>/app   <mount>
//     path /app/web, root /app   ->  <mount>/web       <mount>
//     path /app/web, root /db    ->  nothing: that mount shows the limits of others
//
// Namespaces     Both texts count from the root of the reader's cgroup namespace, and reach above
//                it by leading "..": path "/../x" means that we were moved next to our namespace.
//                If only the mount reaches above (root "/..", path "/web"), the directories
//                between the two have no name that we could know. The mount point itself is still
//                an ancestor, so we read it, and the unnamed ones are skipped.
// Several mounts All that show our path are used, v1 and v2 alike. Duplicates do no harm, since
//                the smallest quota counts, and each mount may show ancestors that another hides.
// Covered mounts A mount that lies under a later one at the same mount point cannot be reached by
//                its name, so it is left out; we would read the other tree's files in its name.
// Existence      is not checked here. The root of v2 never has the file, and others get it when
//                the controller is switched on. The reader simply tries them.

#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace magpie::cpus {

enum class LimitKind {
  kV1,  // cpu.cfs_quota_us and cpu.cfs_period_us, one number each; quota -1 is no limit
  kV2,  // cpu.max: "<quota> <period>" or "max <period>"
};

struct LimitFile {
  LimitKind kind;
  std::string quota_path;
  std::string period_path;  // v1 only

  bool operator==(const LimitFile&) const = default;
};

// Candidates, per mount from the leaf up. `root` is put in front of each mount point (for tests;
// else empty). Lines that are not understood are skipped.
[[nodiscard]] std::vector<LimitFile> find_limit_files(std::string_view cgroup_text,
                                                      std::string_view mountinfo_text,
                                                      std::string_view root);

}  // namespace magpie::cpus
