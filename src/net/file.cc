#include <magpie/net/file.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <string>
#include <system_error>
#include <utility>

#include <magpie/blocking.h>

#include "net/errors.h"

namespace magpie::net {
namespace {

class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  int fd() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  // Says whether everything is written.
  bool close() { return ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

// All return 0 or an error number; called inside blocking(). The functions that it calls are not
// inlined: a compiler may keep the address of errno over a call into the runtime, after which the
// thread may be another.
[[gnu::noinline]] int read_all(const char* path, std::string& contents) {
  File file(open(path, O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) return errno;
  struct stat status;
  if (fstat(file.fd(), &status) != 0) return errno;
  std::size_t size = 0;
  // A file of /proc has size 0, and others may grow: read until the end, whatever it says.
  contents.resize(static_cast<std::size_t>(status.st_size) + 1);
  for (;;) {
    ssize_t count = read(file.fd(), contents.data() + size, contents.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    size += static_cast<std::size_t>(count);
    if (count == 0) break;
    if (size == contents.size()) contents.resize(2 * size + 4096);
  }
  contents.resize(size);
  return 0;
}

int write_whole(int fd, std::string_view contents) {
  while (!contents.empty()) {
    ssize_t count = write(fd, contents.data(), contents.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    contents.remove_prefix(static_cast<std::size_t>(count));
  }
  return 0;
}

// Devices are written in place: there is nothing to replace.
int write_in_place(const std::string& path, std::string_view contents) {
  File file(open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
  if (!file.is_open()) return errno;
  int error = write_whole(file.fd(), contents);
  if (!file.close() && error == 0) error = errno;
  return error;
}

// Where a path leads to, over symbolic links, the last of which may lead to a file that is to be
// made.
int follow_links(std::string& path) {
  for (int links = 0; links < 40; ++links) {
    char text[PATH_MAX];
    ssize_t size = readlink(path.c_str(), text, sizeof text);
    if (size < 0) return errno == EINVAL || errno == ENOENT ? 0 : errno;
    std::string next(text, static_cast<std::size_t>(size));
    if (!next.starts_with('/')) next.insert(0, path, 0, path.rfind('/') + 1);
    path = std::move(next);
  }
  return ELOOP;
}

// A file that is replaced keeps its mode, and its owner and group where the system allows that.
// Another group, or owner, gets nothing that was meant for the old one.
int copy_access(const struct stat& old, const File& file) {
  struct stat now;
  if (fstat(file.fd(), &now) != 0) return errno;
  bool same_owner = old.st_uid == now.st_uid || fchown(file.fd(), old.st_uid, gid_t(-1)) == 0;
  bool same_group = old.st_gid == now.st_gid || fchown(file.fd(), uid_t(-1), old.st_gid) == 0;
  mode_t mode = old.st_mode & 07777;
  if (!same_group) mode = (mode & ~mode_t{070}) | (mode & (mode & 07) << 3);
  if (!same_owner || !same_group) mode &= 01777;
  return fchmod(file.fd(), mode) == 0 ? 0 : errno;
}

// Before the name is another's: after a power failure it is the old file's or that of a whole new
// one.
int to_disk(const File& file) {
  if (fsync(file.fd()) == 0 || errno == EINVAL || errno == EOPNOTSUPP) return 0;
  return errno;
}

// A name that is short, as the file's own may be as long as the system allows. Another program may
// use it already.
int open_beside(const std::string& path, mode_t mode, std::string& name) {
  // atomic, a count: goroutines may write files of the same directory
  static std::atomic<unsigned> number{0};
  const std::string start =
      path.substr(0, path.rfind('/') + 1) + ".magpie-" + std::to_string(getpid()) + '-';
  for (int attempts = 0;; ++attempts) {
    // relaxed: the numbers only differ
    name = start + std::to_string(number.fetch_add(1, std::memory_order_relaxed));
    int fd = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd >= 0 || errno != EEXIST || attempts == 1000) return fd;
  }
}

// Until it is complete nobody may read more of it than of the old file. A new one has from the
// beginning the mode that the system gives, by umask or the directory's rules.
int replace_regular(const std::string& path, const struct stat* old, std::string_view contents) {
  std::string temporary;
  File file(open_beside(path, old == nullptr ? 0666 : 0600, temporary));
  if (!file.is_open()) return errno;
  int error = write_whole(file.fd(), contents);
  if (error == 0 && old != nullptr) error = copy_access(*old, file);
  if (error == 0) error = to_disk(file);
  if (error == 0 && !file.close()) error = errno;
  if (error == 0 && rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error != 0) unlink(temporary.c_str());
  return error;
}

[[gnu::noinline]] int replace(std::string path, std::string_view contents) {
  struct stat old;
  bool is_there = stat(path.c_str(), &old) == 0;
  if (!is_there && errno != ENOENT) return errno;
  if (is_there && S_ISDIR(old.st_mode)) return EISDIR;
  if (is_there && (S_ISCHR(old.st_mode) || S_ISBLK(old.st_mode)))
    return write_in_place(path, contents);
  if (is_there && !S_ISREG(old.st_mode)) return EOPNOTSUPP;
  if (int error = follow_links(path)) return error;
  return replace_regular(path, is_there ? &old : nullptr, contents);
}

// The system would take what is before a zero byte for the path: another file.
std::error_code check(const std::string& path) {
  return code_of(path.find('\0') == path.npos ? 0 : EINVAL);
}

}  // namespace

std::string read_file(const std::string& path, std::error_code& error) {
  std::string contents;
  if ((error = check(path))) return contents;
  error = code_of(blocking([&] { return read_all(path.c_str(), contents); }));
  if (error) contents.clear();
  return contents;
}
std::string read_file(const std::string& path) {
  std::error_code error;
  std::string contents = read_file(path, error);
  if (error) fail(error, "read " + path);
  return contents;
}

void write_file(const std::string& path, std::string_view contents, std::error_code& error) {
  if ((error = check(path))) return;
  error = code_of(blocking([&] { return replace(path, contents); }));
}
void write_file(const std::string& path, std::string_view contents) {
  std::error_code error;
  write_file(path, contents, error);
  if (error) fail(error, "write " + path);
}

}  // namespace magpie::net
