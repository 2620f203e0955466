#include "net/write_quietly.h"

#include <cerrno>

#include "base/without_sigpipe.h"

namespace magpie::net {

[[gnu::noinline]] ssize_t write_quietly(int fd, const UnwrittenParts& parts, std::size_t most) {
  iovec vectors[UnwrittenParts::kAtOnce];
  std::size_t used = parts.next(vectors, most);
  base::WithoutSigpipe quiet;
  ssize_t count = writev(fd, vectors, static_cast<int>(used));
  if (count >= 0) return count;
  int error = errno;
  if (error == EPIPE) quiet.take_it();
  return -error;
}

}  // namespace magpie::net
