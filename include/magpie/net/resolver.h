// resolver.h: replaces the way in which names are looked up.
//
// By default the system looks them up, by getaddrinfo, in a few threads. set_resolver() replaces
// that for the whole program, for instance by magpie::dns (magpie/net/dns.h).
#pragma once

#include <magpie/detail/cxx20.h>

#include <chrono>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include <magpie/detail/api.h>
#include <magpie/net/address.h>

namespace magpie::net {

// Looks up names. Many goroutines may call it at once.
class MAGPIE_API Resolver {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  virtual ~Resolver() = default;

  // The addresses of a name that is no number, the best first, with port 0. Blocks until the
  // deadline at most (errc::timed_out; TimePoint::max(): no deadline), or until the context, which
  // may be null, is over (its err()). Empty: `error` says why.
  virtual std::vector<Address> look_up(const std::string& host, TimePoint deadline,
                                       const Context* context, std::error_code& error) = 0;
};

// From now on resolve(), connect() and bind() ask this resolver; null: the system's. May be called
// at any time.
MAGPIE_API void set_resolver(std::shared_ptr<Resolver> resolver);

}  // namespace magpie::net
