// dns.h: looks up names by c-ares, which needs no threads. In the library magpie::dns.
//
//   net::set_resolver(std::make_shared<net::DnsResolver>());
//
// The system's resolver occupies a thread for each name. This one speaks to the name servers
// itself, and the caller waits as a goroutine. It reads /etc/hosts and /etc/resolv.conf, but no
// other sources of nsswitch.conf (mDNS, LDAP).
#pragma once

#include <magpie/detail/cxx20.h>

#include <chrono>
#include <string>
#include <system_error>
#include <vector>

#include <magpie/detail/api.h>
#include <magpie/net/resolver.h>

namespace magpie::net {

// The errors of c-ares: ARES_ENOTFOUND and the like.
MAGPIE_API const std::error_category& dns_errors() noexcept;

// Asks anew for each call, and remembers nothing. Any number of goroutines and threads may use it
// at once.
class MAGPIE_API DnsResolver final : public Resolver {
 public:
  struct Options {
    std::string servers;  // "192.0.2.1,[2001:db8::1]:53"; empty: those of the system
    // A server is asked again after this time, and later each time.
    std::chrono::milliseconds timeout{2'000};
    int tries = 3;
  };
  explicit DnsResolver(const Options& options) : options_(options) {}
  DnsResolver() : DnsResolver(Options()) {}

  std::vector<Address> look_up(const std::string& host, TimePoint deadline, const Context* context,
                               std::error_code& error) override;

 private:
  const Options options_;
};

}  // namespace magpie::net
