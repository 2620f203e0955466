// resolve.h: names are looked up, not longer than the caller wants to wait.
#pragma once

#include <string>
#include <system_error>
#include <vector>

#include <magpie/net/address.h>

namespace magpie::net {

// Numbers at once, names by the resolver that is set. The context may be null. None: `error` says
// why.
std::vector<Address> look_up(const std::string& host, detail::DeadlineNs deadline,
                             const Context* context, std::error_code& error);

// An address that is written as a number, with a scope as in fe80::1%eth0, or none. Does not block.
std::vector<Address> addresses_of_number(const std::string& host);

// What getaddrinfo says. May block.
std::vector<Address> ask_system(const std::string& host, int flags, std::error_code& error);

// The system's resolver, in threads: see resolver_threads.cc.
std::vector<Address> look_up_in_thread(const std::string& host, detail::DeadlineNs deadline,
                                       const Context* context, std::error_code& error);

}  // namespace magpie::net
