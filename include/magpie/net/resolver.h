// resolver.h: who looks up names.
//
// By default the system does, by getaddrinfo, in a few threads of its own. Another one, such as magpie::dns's
// (magpie/net/dns.h), is put in its place for the whole program.
#pragma once

#include <magpie/detail/cxx20.h>

#include <chrono>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include <magpie/net/address.h>

namespace magpie::net {

class Resolver {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  virtual ~Resolver() = default;

  // The addresses of a name that is no number, the best first, with port 0. Blocks, but not longer than until the deadline
  // (errc::timed_out; TimePoint::max(): without end), nor after the context, if it is not null, is over (its err()). Is called
  // by several at a time. None: `error` says why.
  virtual std::vector<Address> look_up(const std::string& host, TimePoint deadline,
                                       const Context* context, std::error_code& error) = 0;
};

// From now on resolve(), connect() and bind() ask this one; null: the system's. May be called at any time.
void set_resolver(std::shared_ptr<Resolver> resolver);

}  // namespace magpie::net
