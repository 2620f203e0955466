// limit_files.cc: see limit_files.h.

#include "cpus/limit_files.h"

#include <algorithm>
#include <climits>
#include <cstddef>
#include <optional>
#include <span>

namespace magpie::cpus {
namespace {

// Cuts the text up to `end` (or all of it) off the front of `rest`.
std::string_view take_until(std::string_view& rest, char end) {
  const std::size_t at = rest.find(end);
  const std::string_view taken = rest.substr(0, at);
  rest.remove_prefix(at == std::string_view::npos ? rest.size() : at + 1);
  return taken;
}

bool lists(std::string_view comma_separated, std::string_view wanted) {
  while (!comma_separated.empty()) {
    if (take_until(comma_separated, ',') == wanted) return true;
  }
  return false;
}

// A place in a cgroup tree, counted from the root of our cgroup namespace: first up, then down.
// Views into the text that it was parsed from.
struct Place {
  std::size_t ups = 0;
  std::vector<std::string_view> names;
};

std::optional<Place> parse_place(std::string_view text) {
  // The kernel builds these in a buffer of PATH_MAX. The check bounds the work on nonsense.
  if (text.empty() || text.front() != '/' || text.size() > PATH_MAX) return std::nullopt;
  Place place;
  while (!text.empty()) {
    const std::string_view name = take_until(text, '/');
    if (name.empty()) continue;
    if (name != "..") {
      place.names.push_back(name);
    } else if (place.names.empty()) {
      ++place.ups;
    } else {
      return std::nullopt;  // the kernel writes ".." only in front
    }
  }
  return place;
}

// The names that lead from the mount's root down to us, or none if the mount does not lie above us.
std::optional<std::span<const std::string_view>> names_below(const Place& mount_root,
                                                             const Place& us) {
  using Names = std::span<const std::string_view>;
  // Above our namespace: certainly an ancestor, but the way down from it has no names.
  if (mount_root.ups > us.ups && mount_root.names.empty()) return Names{};

  const std::size_t shared = mount_root.names.size();
  if (mount_root.ups != us.ups || shared > us.names.size()) return std::nullopt;
  if (!std::equal(mount_root.names.begin(), mount_root.names.end(), us.names.begin())) {
    return std::nullopt;
  }
  return Names(us.names).subspan(shared);
}

// Where this process sits in the two kinds of tree. In a hybrid set-up both are present.
struct Membership {
  std::optional<Place> v1;
  std::optional<Place> v2;

  const std::optional<Place>& in(LimitKind kind) const { return kind == LimitKind::kV1 ? v1 : v2; }
};

// Lines: "<hierarchy>:<controllers>:<path>". The path is not escaped and may itself contain colons.
Membership parse_membership(std::string_view text) {
  Membership membership;
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    const std::string_view hierarchy = take_until(line, ':');
    const std::string_view controllers = take_until(line, ':');
    if (hierarchy == "0" && controllers.empty()) {
      membership.v2 = parse_place(line);
    } else if (lists(controllers, "cpu")) {
      membership.v1 = parse_place(line);
    }
  }
  return membership;
}

// A line of mountinfo, still escaped; only the parts that we need. Views into the text.
struct MountLine {
  std::string_view id;
  std::string_view parent_id;
  std::string_view root;
  std::string_view point;
  std::optional<LimitKind> kind;  // none: not a tree that limits CPUs
};

std::optional<LimitKind> kind_of(std::string_view type, std::string_view super_options) {
  if (type == "cgroup2") return LimitKind::kV2;
  if (type == "cgroup" && lists(super_options, "cpu")) return LimitKind::kV1;
  return std::nullopt;
}

// "<id> <parent> <device> <root> <point> <options> <optional>* - <type> <source> <super options>"
MountLine parse_mount_line(std::string_view line) {
  const std::size_t separator = line.find(" - ");
  if (separator == std::string_view::npos) return {};
  std::string_view front = line.substr(0, separator);
  std::string_view back = line.substr(separator + 3);

  MountLine mount;
  mount.id = take_until(front, ' ');
  mount.parent_id = take_until(front, ' ');
  take_until(front, ' ');
  mount.root = take_until(front, ' ');
  mount.point = take_until(front, ' ');
  const std::string_view type = take_until(back, ' ');
  take_until(back, ' ');
  mount.kind = kind_of(type, take_until(back, ' '));
  return mount;
}

std::vector<MountLine> reachable_cgroup_mounts(std::string_view text) {
  std::vector<MountLine> found;
  for (std::string_view rest = text; !rest.empty();) {
    const MountLine mount = parse_mount_line(take_until(rest, '\n'));
    if (mount.kind) found.push_back(mount);
  }
  // A second pass, because the kernel does not promise that a mount comes after the one it covers.
  for (std::string_view rest = text; !rest.empty();) {
    const MountLine top = parse_mount_line(take_until(rest, '\n'));
    std::erase_if(found, [&](const MountLine& mount) {
      return mount.id == top.parent_id && mount.point == top.point;
    });
  }
  return found;
}

bool is_octal(char c) { return c >= '0' && c <= '7'; }

// mountinfo writes blank, tab, newline and backslash as \ooo.
std::string unescape(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escape = text[i] == '\\' && text.size() - i > 3 && is_octal(text[i + 1]) &&
                        is_octal(text[i + 2]) && is_octal(text[i + 3]);
    if (!escape) {
      plain.push_back(text[i]);
      continue;
    }
    const int code = (text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0');
    plain.push_back(static_cast<char>(code));
    i += 3;
  }
  return plain;
}

LimitFile limit_file_in(const std::string& directory, LimitKind kind) {
  if (kind == LimitKind::kV2) return {kind, directory + "/cpu.max", ""};
  return {kind, directory + "/cpu.cfs_quota_us", directory + "/cpu.cfs_period_us"};
}

// Adds the files of the mount point and of each directory below it on the way to us, leaf first.
void add_chain(LimitKind kind, std::string directory, std::span<const std::string_view> names,
               std::vector<LimitFile>& files) {
  while (directory.ends_with('/')) directory.pop_back();
  std::vector<LimitFile> top_down = {limit_file_in(directory, kind)};
  for (std::string_view name : names) {
    directory.append("/").append(name);
    top_down.push_back(limit_file_in(directory, kind));
  }
  files.insert(files.end(), top_down.rbegin(), top_down.rend());
}

}  // namespace

std::vector<LimitFile> find_limit_files(std::string_view cgroup_text,
                                        std::string_view mountinfo_text, std::string_view root) {
  std::vector<LimitFile> files;
  const Membership membership = parse_membership(cgroup_text);
  for (const MountLine& mount : reachable_cgroup_mounts(mountinfo_text)) {
    const std::optional<Place>& us = membership.in(*mount.kind);
    const std::string mount_root_text = unescape(mount.root);
    const std::optional<Place> mount_root = parse_place(mount_root_text);
    if (!us || !mount_root || !mount.point.starts_with('/')) continue;

    if (const auto names = names_below(*mount_root, *us)) {
      add_chain(*mount.kind, std::string(root) + unescape(mount.point), *names, files);
    }
  }
  return files;
}

}  // namespace magpie::cpus
