// socket.h: the system's calls on sockets, with errors as exceptions.
#pragma once

#include <memory>

#include <magpie/net/address.h>

#include "io/descriptor.h"

namespace magpie::net {

// What looks at errno is not inlined: a compiler may keep its address over a call into the runtime, after which the thread
// may be another.

// Throws std::system_error with errno.
[[noreturn, gnu::noinline]] void throw_errno(const char* what);

// A new socket that does not block. Throws std::system_error.
std::unique_ptr<io::Descriptor> open_socket(int family, int type, io::Descriptor::Kind kind);

void set_option(const io::Descriptor& descriptor, int level, int option, int value);
[[gnu::noinline]] void bind_to(const io::Descriptor& descriptor, const Address& address);
void listen_on(const io::Descriptor& descriptor);

// Blocks until it is connected, or fails.
void connect_to(io::Descriptor& descriptor, const Address& address);

Address local_address_of(const io::Descriptor& descriptor);
Address remote_address_of(const io::Descriptor& descriptor);

// The addresses to bind to for "host:port"; an empty host is every address of the machine.
Address address_to_bind(std::string_view host_and_port);

}  // namespace magpie::net
