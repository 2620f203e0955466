// host_port.h: "host:port" taken apart.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <magpie/detail/api.h>

namespace magpie::net {

struct HostPort {
  std::string host;  // without brackets; empty: every address
  std::uint16_t port;
};

// Throws std::invalid_argument, with what is wrong.
MAGPIE_API HostPort split_host_port(std::string_view text);

}  // namespace magpie::net
