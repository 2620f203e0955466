// socket.h: the system's calls on sockets. What went wrong is returned.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>

#include <magpie/net/address.h>

#include "io/descriptor.h"

namespace magpie::net {

// What looks at errno is not inlined: a compiler may keep its address over a call into the runtime,
// after which the thread may be another.

// Takes over a number that nobody else would close: without memory it is closed. Throws
// std::bad_alloc.
std::unique_ptr<io::Descriptor> take_over(int fd, io::Descriptor::Kind kind);

// A new socket that does not block; null: see `error`.
[[gnu::noinline]] std::unique_ptr<io::Descriptor> open_socket(int family, int type,
                                                              io::Descriptor::Kind kind,
                                                              std::error_code& error);

// A socket of others is taken over if it is what is expected; else null, `error` says
// errc::invalid_argument or what the system does, and it stays the caller's. SO_DOMAIN is AF_UNIX,
// or AF_INET for both IPs.
enum class Expected { listening, connected, datagrams };
[[gnu::noinline]] std::unique_ptr<io::Descriptor> adopt_socket(int fd, int domain,
                                                               Expected expected,
                                                               io::Descriptor::Kind kind,
                                                               std::error_code& error);
// "adopt descriptor 7".
std::string adopting(int fd);

[[gnu::noinline]] std::error_code set_option(const io::Descriptor& descriptor, int level,
                                             int option, int value);
std::error_code keep_alive(const io::Descriptor& descriptor, std::chrono::seconds idle);
[[gnu::noinline]] std::error_code bind_to(const io::Descriptor& descriptor, const Address& address);
[[gnu::noinline]] std::error_code listen_on(const io::Descriptor& descriptor, int backlog);

// Blocks until it is connected, or fails.
std::error_code connect_to(io::Descriptor& descriptor, const Address& address,
                           const Context* context);

// Empty after an error. A null descriptor is errc::bad_file_descriptor.
[[gnu::noinline]] Address local_address_of(const io::Descriptor* descriptor,
                                           std::error_code& error);
[[gnu::noinline]] Address remote_address_of(const io::Descriptor* descriptor,
                                            std::error_code& error);

// The address to bind to for "host:port"; an empty host is every address of the machine.
Address address_to_bind(std::string_view host_and_port, const Context* context,
                        std::error_code& error);

// For errors: "bind to 127.0.0.1:80", "connect to /run/x".
std::string binding(std::string_view where);
std::string connecting(std::string_view where);

}  // namespace magpie::net
