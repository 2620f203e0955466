// inherited.h: sockets that systemd, or a program that speaks its protocol, opened before this one
// began.
#pragma once

#include <magpie/detail/cxx20.h>

#include <string>
#include <vector>

#include <magpie/detail/api.h>

namespace magpie::net {

// A socket and its name.
struct InheritedSocket {
  int fd;
  std::string name;  // FileDescriptorName= of the unit; empty: it has none
};

// The sockets of LISTEN_FDS, if LISTEN_PID names this process; else none. Marks them, so that
// programs which this one starts do not get them. Give each to TcpListener::adopt(),
// UnixListener::adopt() or UdpSocket::adopt(). Changes no environment variable. Throws only
// std::bad_alloc.
MAGPIE_API std::vector<InheritedSocket> inherited_sockets();

}  // namespace magpie::net
