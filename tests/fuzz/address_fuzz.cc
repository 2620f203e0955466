// address_fuzz.cc: any bytes as addresses: as text, as a path, and as the system's structures.
// libFuzzer calls it; see tests/CMakeLists.txt.
//
// An address that is accepted means the same when it is written and read again, and its parts are
// those of its text.

#include <magpie/net/address.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>

#include "net/host_port.h"

namespace {

using magpie::net::Address;

void fail(const char* why, std::string_view text) {
  std::fprintf(stderr, "%s: \"%.*s\"\n", why, static_cast<int>(text.size()), text.data());
  std::abort();
}

void try_text(std::string_view text) {
  try {
    magpie::net::HostPort parts = magpie::net::split_host_port(text);
    if (parts.host.find('\0') != std::string::npos) fail("a zero byte in a host", text);
    if (!text.ends_with(std::to_string(parts.port))) fail("another port", text);
  } catch (const std::invalid_argument&) {
  }
  try {
    Address address = Address::parse(text);
    if (address.family() != AF_INET && address.family() != AF_INET6) fail("another family", text);
    if (!(Address::parse(address.to_string()) == address)) fail("another address", text);
    if (address.with_port(7).port() != 7) fail("another port", text);
  } catch (const std::invalid_argument&) {
  }
  try {
    Address path = Address::unix_path(text);
    if (path.family() != AF_UNIX || path.to_string() != text) fail("another path", text);
    if (!(Address::from(path.data(), path.size()) == path)) fail("another address of a path", text);
  } catch (const std::invalid_argument&) {
  }
}

// As accept() fills it in: with a size that may be anything up to the room there is.
void try_structure(std::string_view bytes) {
  sockaddr_storage storage{};
  const std::size_t size = std::min(bytes.size(), sizeof storage);
  std::memcpy(&storage, bytes.data(), size);
  constexpr sa_family_t kFamilies[] = {AF_INET, AF_INET6, AF_UNIX, AF_UNSPEC};
  storage.ss_family = kFamilies[size % 4];
  try {
    Address address =
        Address::from(reinterpret_cast<const sockaddr*>(&storage), static_cast<socklen_t>(size));
    (void)address.to_string();
    (void)address.host();
    (void)address.port();
    if (!(address == address)) fail("an address is not itself", bytes);
  } catch (const std::invalid_argument&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try_text(bytes);
  try_structure(bytes);
  return 0;
}
