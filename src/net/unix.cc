#include <magpie/net/unix.h>

#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "net/socket.h"

namespace magpie::net {

using io::Descriptor;

UnixConn UnixConn::connect(std::string_view path) {
  std::unique_ptr<Descriptor> descriptor =
      open_socket(AF_UNIX, SOCK_STREAM, Descriptor::Kind::packets);
  connect_to(*descriptor, Address::unix_path(path));
  return UnixConn(std::move(descriptor));
}

UnixListener UnixListener::bind(std::string_view path) {
  Address address = Address::unix_path(path);
  std::unique_ptr<Descriptor> descriptor =
      open_socket(AF_UNIX, SOCK_STREAM, Descriptor::Kind::packets);
  bind_to(*descriptor, address);
  UnixListener listener(std::move(descriptor));
  if (path.front() != '@') listener.path_ = path;
  listener.listen();
  return listener;
}

UnixListener& UnixListener::operator=(UnixListener&& other) noexcept {
  close();
  Listener::operator=(std::move(other));
  path_ = std::exchange(other.path_, {});
  return *this;
}

void UnixListener::close() noexcept {
  Listener::close();
  if (!path_.empty()) unlink(path_.c_str());
  path_.clear();
}

UnixConn UnixListener::accept() { return UnixConn(accept_descriptor()); }

}  // namespace magpie::net
