#include "http/url.h"

#include <algorithm>
#include <stdexcept>

#include "http/text.h"

namespace magpie::http {

namespace {

const char* default_port(std::string_view scheme) { return scheme == "https" ? "443" : "80"; }

[[noreturn]] void refuse_url(std::string_view text, const char* why) {
  throw std::invalid_argument("magpie: the URL \"" + std::string(text) + "\" " + why);
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  }
  return result;
}

bool is_port(std::string_view text) {
  return !text.empty() && text.size() <= 5 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; }) &&
         std::stoi(std::string(text)) <= 65535;
}

bool is_host(std::string_view text) {
  const bool address = text.starts_with('[') && text.ends_with(']');
  if (address) text = text.substr(1, text.size() - 2);
  return !text.empty() && std::all_of(text.begin(), text.end(), [address](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_' ||
           c == '%' || (address && c == ':');
  });
}

// Resolves "." and ".." in a path.
std::string without_dots(std::string_view path) {
  std::string result;
  for (std::size_t at = 0; at < path.size();) {
    std::size_t end = std::min(path.find('/', at + 1), path.size());
    std::string_view segment = path.substr(at, end - at);  // with its slash
    at = end;
    const bool last = at == path.size();
    if (segment == "/..") {
      result.resize(std::min(result.rfind('/'), result.size()));
      if (last) result += '/';
    } else if (segment == "/.") {
      if (last) result += '/';
    } else {
      result += segment;
    }
  }
  return result.empty() ? "/" : result;
}

}  // namespace

Url Url::parse(std::string_view text) {
  for (char c : text) {
    if (static_cast<unsigned char>(c) <= ' ' || c == 0x7f)
      refuse_url(text, "has a space or control character");
  }
  Url url;
  std::size_t mark = text.find("://");
  if (mark == std::string_view::npos) refuse_url(text, "does not begin with http:// or https://");
  url.scheme = lower(text.substr(0, mark));
  if (url.scheme != "http" && url.scheme != "https") refuse_url(text, "is neither http nor https");
  std::string_view rest = text.substr(mark + 3);
  rest = rest.substr(0, rest.find('#'));
  std::size_t path = std::min(rest.find_first_of("/?"), rest.size());
  std::string_view authority = rest.substr(0, path);
  if (authority.find('@') != std::string_view::npos)
    refuse_url(text, "has a user in it; use the header Authorization");

  std::size_t colon = authority.rfind(':');
  if (authority.starts_with('[')) {
    std::size_t bracket = authority.find(']');
    if (bracket == std::string_view::npos) refuse_url(text, "has a [ without ]");
    if (colon < bracket) colon = std::string_view::npos;
    if (bracket + 1 != std::min(colon, authority.size())) refuse_url(text, "has something after ]");
  }
  url.host = lower(authority.substr(0, colon));
  url.port = colon == std::string_view::npos ? std::string_view() : authority.substr(colon + 1);
  if (url.port.empty()) url.port = default_port(url.scheme);
  if (!is_host(url.host)) refuse_url(text, "has no host that is a name or an address");
  if (!is_port(url.port)) refuse_url(text, "has a port that is none");
  url.target = rest.substr(path);
  if (!url.target.starts_with('/')) url.target.insert(0, "/");
  return url;
}

std::string Url::authority() const {
  return port == default_port(scheme) ? host : host + ":" + port;
}

Url Url::resolve(std::string_view location) const {
  std::size_t scheme_end = location.find("://");
  if (scheme_end != std::string_view::npos && scheme_end < location.find_first_of("/?#"))
    return parse(location);
  if (location.starts_with("//")) return parse(scheme + ":" + std::string(location));
  std::string base = scheme + "://" + authority();
  std::string path = target.substr(0, target.find('?'));
  std::string_view fragmentless = location.substr(0, location.find('#'));
  if (fragmentless.empty()) return parse(base + target);
  if (fragmentless.starts_with('?')) return parse(base + path + std::string(fragmentless));
  std::size_t query = std::min(fragmentless.find('?'), fragmentless.size());
  std::string to(fragmentless.substr(0, query));
  if (!to.starts_with('/')) to = path.substr(0, path.rfind('/') + 1) + to;
  return parse(base + without_dots(to) + std::string(fragmentless.substr(query)));
}

}  // namespace magpie::http
