#include "trace/storage.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace magpie::trace {

std::shared_ptr<const Storage> Storage::open(const std::string& path, std::string& error) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe may have no writer
  struct stat status;
  if (fd < 0 || fstat(fd, &status) != 0) {
    error = path + ": " + std::strerror(errno);
    if (fd >= 0) close(fd);
    return nullptr;
  }
  if (!S_ISREG(status.st_mode)) {
    error = path + ": is not a file";
    close(fd);
    return nullptr;
  }
  const auto bytes = static_cast<std::uint64_t>(status.st_size);
  return std::shared_ptr<const Storage>(new Storage(fd, bytes));
}

Storage::~Storage() {
  if (fd_ >= 0) close(fd_);
}

std::size_t Storage::read(std::uint64_t at, void* to, std::size_t most) const {
  if (at >= bytes_ || most == 0) return 0;
  most = static_cast<std::size_t>(std::min<std::uint64_t>(most, bytes_ - at));
  if (fd_ < 0) {
    std::memcpy(to, held_.data() + at, most);
    return most;
  }
  std::size_t done = 0;
  while (done != most) {
    ssize_t n =
        pread(fd_, static_cast<char*>(to) + done, most - done, static_cast<off_t>(at + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      missed_bytes_.store(true, std::memory_order_relaxed);  // relaxed: nothing depends on it
      break;
    }
    done += static_cast<std::size_t>(n);
  }
  return done;
}

Window::Bytes Window::at(std::uint64_t place, std::size_t least) {
  const bool is_there = place >= begin_ && place - begin_ <= bytes_.size() &&
                        least <= bytes_.size() - (place - begin_);
  if (!is_there) {
    bytes_.resize(piece_);
    bytes_.resize(storage_.read(place, bytes_.data(), piece_));
    begin_ = place;
  }
  const auto skipped = static_cast<std::size_t>(place - begin_);
  return {bytes_.data() + skipped, bytes_.size() - skipped};
}

}  // namespace magpie::trace
