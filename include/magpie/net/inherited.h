// inherited.h: sockets that were opened before this program began, by systemd or by what speaks its protocol.
#pragma once

#include <magpie/detail/cxx20.h>

#include <string>
#include <vector>

namespace magpie::net {

struct InheritedSocket {
  int fd;
  std::string name;  // FileDescriptorName= of the unit; empty: it has none
};

// The sockets of LISTEN_FDS, if LISTEN_PID says that they are for this process; else none. From then on programs that this one
// starts do not get them. Give each to TcpListener::adopt(), UnixListener::adopt() or UdpSocket::adopt(). Never throws but
// std::bad_alloc. Changes no variable of the environment.
std::vector<InheritedSocket> inherited_sockets();

}  // namespace magpie::net
