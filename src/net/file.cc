#include <magpie/net/file.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
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

// All return 0 or an error number; called inside blocking(). Those that it calls are not inlined: a compiler may keep the
// address of errno over a call into the runtime, after which the thread may be another.
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

// A file that is replaced keeps its mode; a new one has what the system gives.
int copy_mode(const std::string& path, const File& file) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return 0;
  return fchmod(file.fd(), status.st_mode & 07777) == 0 ? 0 : errno;
}

[[gnu::noinline]] int replace(const std::string& path, const std::string& temporary,
                              std::string_view contents) {
  File file(open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file.is_open()) return errno;
  int error = write_whole(file.fd(), contents);
  if (error == 0) error = copy_mode(path, file);
  if (error == 0 && !file.close()) error = errno;
  if (error == 0 && rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error != 0) unlink(temporary.c_str());
  return error;
}

}  // namespace

std::string read_file(const std::string& path, std::error_code& error) {
  std::string contents;
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
  // atomic, a count: of the file beside it, as goroutines may write the same one
  static std::atomic<unsigned> number{0};
  std::string temporary =
      path + ".new-" + std::to_string(getpid()) + '-' + std::to_string(number.fetch_add(1));
  error = code_of(blocking([&] { return replace(path, temporary, contents); }));
}
void write_file(const std::string& path, std::string_view contents) {
  std::error_code error;
  write_file(path, contents, error);
  if (error) fail(error, "write " + path);
}

}  // namespace magpie::net
