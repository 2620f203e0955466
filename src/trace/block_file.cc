#include "trace/block_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/without_sigpipe.h"
#include "trace/buffer.h"

namespace magpie::trace {

bool write_all(int fd, const void* data, std::size_t bytes) {
  auto* from = static_cast<const char*>(data);
  base::WithoutSigpipe quiet;
  while (bytes != 0) {
    ssize_t written = write(fd, from, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EPIPE) {
      quiet.take_it();
      errno = EPIPE;
    }
    if (written <= 0) return false;
    from += written;
    bytes -= static_cast<std::size_t>(written);
  }
  return true;
}

BlockHeader header_of(BlockType type, std::uint32_t generation, std::size_t bytes) {
  return {.magic = kBlockMagic,
          .type = static_cast<std::uint8_t>(type),
          .flags = 0,
          .stream = kOutsideStream,
          .generation = generation,
          .payload_bytes = static_cast<std::uint32_t>(bytes),
          .first_ticks = ticks_now()};
}

BlockHeader header_of(const Block& block, std::size_t bytes) {
  return {.magic = kBlockMagic,
          .type = static_cast<std::uint8_t>(BlockType::events),
          .flags = 0,
          .stream = block.stream,
          .generation = block.generation,
          .payload_bytes = static_cast<std::uint32_t>(bytes),
          .first_ticks = block.first_ticks};
}

bool write_block(int fd, const BlockHeader& header, const void* payload) {
  return write_all(fd, &header, sizeof header) && write_all(fd, payload, header.payload_bytes);
}

void append_block(std::string& out, const BlockHeader& header, std::string_view payload) {
  out.append(reinterpret_cast<const char*>(&header), sizeof header);
  out.append(payload);
}

// A plain file of ours is replaced, not emptied: a reader that has mapped the old trace keeps it.
int open_to_write(const char* path) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_CLOEXEC;
  struct stat old;
  if (lstat(path, &old) == 0 && S_ISREG(old.st_mode) && old.st_nlink == 1 &&
      old.st_uid == geteuid() && unlink(path) == 0) {
    const int fd = open(path, kFlags | O_EXCL, old.st_mode & 0777);
    if (fd >= 0) return fd;
  }
  return open(path, kFlags | O_TRUNC, 0644);
}

}  // namespace magpie::trace
