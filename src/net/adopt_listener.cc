#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>
#include <system_error>

#include <magpie/net/tcp.h>

#include "io/descriptor.h"
#include "net/socket.h"

namespace magpie::net {
namespace {

// An error number.
[[gnu::noinline]] int prepare(int fd) {
  int listens = 0;
  socklen_t size = sizeof listens;
  if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0) return errno;
  if (listens == 0) return EINVAL;
  int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) return errno;
  return fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 ? 0 : errno;
}

}  // namespace

TcpListener TcpListener::adopt(int fd) {
  if (int error = prepare(fd); error != 0)
    throw std::system_error(error, std::generic_category(), "magpie: adopt a listener");
  return TcpListener(std::make_unique<io::Descriptor>(fd, io::Descriptor::Kind::stream));
}

}  // namespace magpie::net
