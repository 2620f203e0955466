#include "view/access.h"

#include <netinet/in.h>

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <utility>

#include <magpie/http/error.h>

#include "http/text.h"

namespace magpie::view {
namespace {

// Takes as long for a wrong text as for the right one: its time tells nothing of the secret.
bool same_secret(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const char other = b.empty() ? '\0' : b[i % b.size()];
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(other);
  }
  return difference == 0;
}

std::string_view without_port(std::string_view host) {
  if (host.starts_with('[')) return host.substr(0, host.find(']') + 1);
  return host.substr(0, host.find(':'));
}

// A client without an IP address is on a Unix socket, or on a stream that this process made.
bool is_on_this_machine(std::string_view remote_address) {
  if (remote_address.empty() || remote_address.starts_with('/') || remote_address.starts_with('@'))
    return true;
  try {
    return is_loopback(net::Address::parse(remote_address));
  } catch (const std::invalid_argument&) {
    return false;
  }
}

bool is_origin_of(std::string_view origin, std::string_view host) {
  for (std::string_view scheme : {"http://", "https://"}) {
    if (origin.starts_with(scheme) && http::same_name(origin.substr(scheme.size()), host))
      return true;
  }
  return false;
}

}  // namespace

bool is_loopback(const net::Address& address) {
  switch (address.family()) {
    case AF_UNIX:
      return true;
    case AF_INET: {
      const auto* v4 = reinterpret_cast<const sockaddr_in*>(address.data());
      return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
    }
    case AF_INET6: {
      const in6_addr& v6 = reinterpret_cast<const sockaddr_in6*>(address.data())->sin6_addr;
      return IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127);
    }
    default:
      return false;
  }
}

Access::Access(debug::ServeOptions options) : options_(std::move(options)) {}

bool Access::shows_token(const Asked& asked) const {
  constexpr std::string_view kScheme = "Bearer ";
  std::string_view bearer = asked.authorization;
  if (bearer.starts_with(kScheme) && same_secret(options_.token, bearer.substr(kScheme.size())))
    return true;
  return same_secret(options_.token, asked.token);
}

bool Access::is_own_name(std::string_view host) const {
  const std::string_view name = without_port(host);
  if (http::same_name(name, "localhost") || name == "[::1]") return true;
  if (std::any_of(options_.hosts.begin(), options_.hosts.end(),
                  [name](const std::string& own) { return http::same_name(name, own); })) {
    return true;
  }
  try {
    return is_loopback(net::Address::parse(std::string(name) + ":0"));
  } catch (const std::invalid_argument&) {
    return false;
  }
}

Access::Verdict Access::judge(const Asked& asked) const {
  if (!asked.origin.empty() && !is_origin_of(asked.origin, asked.host))
    return Verdict::foreign_origin;
  // "none": a person typed the address, or opened a link from outside the browser.
  const std::string_view site = asked.fetch_site;
  if (!site.empty() && site != "same-origin" && site != "none") return Verdict::foreign_origin;
  if (!options_.token.empty()) return shows_token(asked) ? Verdict::allowed : Verdict::needs_token;
  if (!is_on_this_machine(asked.remote_address)) return Verdict::foreign_client;
  return is_own_name(asked.host) ? Verdict::allowed : Verdict::foreign_host;
}

void Access::check(const http::Request& request) const {
  const std::string remote = request.remote_address();
  switch (judge({.remote_address = remote,
                 .host = request.host(),
                 .origin = request.header("Origin"),
                 .fetch_site = request.header("Sec-Fetch-Site"),
                 .authorization = request.header("Authorization"),
                 .token = request.query("token")})) {
    case Verdict::allowed:
      return;
    case Verdict::needs_token:
      throw http::StatusError(401, "This page needs the token: ?token=... or a Bearer token.\n");
    case Verdict::foreign_client:
      throw http::StatusError(403, "Without a token, only this machine may ask.\n");
    case Verdict::foreign_host:
      throw http::StatusError(403, "This host's name is not loopback. See ServeOptions::hosts.\n");
    case Verdict::foreign_origin:
      throw http::StatusError(403, "Another site's page may not ask.\n");
  }
}

}  // namespace magpie::view
