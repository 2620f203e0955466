#include <magpie/net/inherited.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <string_view>

namespace magpie::net {
namespace {

// -1: it is not set, or no number.
int number_in(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return -1;
  std::string_view digits = text;
  int value = -1;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return error == std::errc() && end == digits.data() + digits.size() ? value : -1;
}

std::string_view take_name(std::string_view& names) {
  std::size_t colon = names.find(':');
  std::string_view name = names.substr(0, colon);
  names.remove_prefix(colon == std::string_view::npos ? names.size() : colon + 1);
  return name;
}

}  // namespace

std::vector<InheritedSocket> inherited_sockets() {
  constexpr int kFirst = 3;  // SD_LISTEN_FDS_START
  std::vector<InheritedSocket> sockets;
  if (number_in("LISTEN_PID") != getpid()) return sockets;
  const char* list = std::getenv("LISTEN_FDNAMES");
  std::string_view names = list == nullptr ? "" : list;
  // The variable may be nonsense: no descriptor is above the limit of the process.
  long end =
      std::min<long>(kFirst + long{number_in("LISTEN_FDS")}, std::numeric_limits<int>::max());
  if (const long limit = sysconf(_SC_OPEN_MAX); limit >= 0) end = std::min(end, limit);
  for (int fd = kFirst; fd < end; ++fd) {
    std::string_view name = take_name(names);
    int flags = fcntl(fd, F_GETFD);
    if (flags < 0) continue;  // it is not there
    fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
    sockets.push_back({fd, std::string(name)});
  }
  return sockets;
}

}  // namespace magpie::net
