// file_text.cc: see file_text.h.

#include "cpus/file_text.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace magpie::cpus {
namespace {

FileRead meaning_of(int error) {
  switch (error) {
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return FileRead::try_later;
    default:
      // Also ENODEV, which a read gives when the cgroup was removed after the open.
      return FileRead::missing;
  }
}

int open_for_reading(const std::string& path) {
  int fd;
  do {
    fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

}  // namespace

FileRead read_text(const std::string& path, std::string& text) {
  text.clear();
  const int fd = open_for_reading(path);
  if (fd < 0) return meaning_of(errno);

  FileRead result = FileRead::read;
  char piece[4096];
  for (;;) {
    const ssize_t count = read(fd, piece, sizeof piece);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      result = meaning_of(errno);
      text.clear();
    }
    if (count <= 0) break;
    text.append(piece, static_cast<std::size_t>(count));
  }
  close(fd);
  return result;
}

}  // namespace magpie::cpus
