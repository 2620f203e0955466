#include "http/router.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "http/target.h"
#include "http/text.h"

namespace magpie::http {

namespace {

[[noreturn]] void refuse_pattern(std::string_view pattern, const char* why) {
  throw std::invalid_argument("magpie: the pattern \"" + std::string(pattern) + "\" " + why);
}

bool is_identifier(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  });
}

}  // namespace

void Router::add(std::string_view pattern, Handler handler,
                 std::optional<std::uint64_t> max_body_bytes) {
  auto route = std::make_unique<Route>();
  route->pattern = pattern;
  route->max_body_bytes = max_body_bytes;
  if (!handler) refuse_pattern(pattern, "has no handler");
  route->handler = std::move(handler);

  std::string_view path = pattern;
  if (std::size_t space = pattern.find(' '); space != std::string_view::npos) {
    route->method = pattern.substr(0, space);
    if (!is_field_name(route->method)) refuse_pattern(pattern, "does not begin with a method");
    if (std::any_of(route->method.begin(), route->method.end(),
                    [](char c) { return c >= 'a' && c <= 'z'; }))
      refuse_pattern(pattern, "would never match: methods are written in capitals, as GET");
    if (route->method == kTunnelMethod)
      refuse_pattern(pattern, "would never match: the server makes no tunnels");
    path = pattern.substr(std::min(pattern.find_first_not_of(' ', space), pattern.size()));
  }
  if (!path.starts_with('/')) refuse_pattern(pattern, "has no path that begins with /");
  for (char c : path) {
    if (static_cast<unsigned char>(c) <= ' ' || c == 0x7f)
      refuse_pattern(pattern,
                     "would never match: a path has no spaces or control characters; write %20");
    if (c == '?' || c == '#')
      refuse_pattern(pattern,
                     "would never match: a path ends before ? and #; see Request::query()");
  }

  Node* node = &root_;
  std::vector<std::unique_ptr<Route>>* ends = nullptr;
  for (std::size_t at = 0; at < path.size();) {
    if (ends != nullptr) refuse_pattern(pattern, "goes on after {...}");
    std::size_t end = std::min(path.find('/', at + 1), path.size());
    std::string_view segment = path.substr(at + 1, end - at - 1);
    at = end;
    if (segment.starts_with('{') && segment.ends_with('}')) {
      std::string_view name = segment.substr(1, segment.size() - 2);
      const bool rest = name.ends_with("...");
      if (rest) name.remove_suffix(3);
      if (!is_identifier(name)) refuse_pattern(pattern, "has a parameter without a proper name");
      if (std::find(route->names.begin(), route->names.end(), name) != route->names.end())
        refuse_pattern(pattern, "has two parameters of one name");
      route->names.emplace_back(name);
      if (rest) {
        ends = &node->rest_routes;
      } else {
        if (!node->parameter) node->parameter = std::make_unique<Node>();
        node = node->parameter.get();
      }
    } else {
      if (segment.find_first_of("{}") != std::string_view::npos)
        refuse_pattern(pattern, "has a parameter that is not a whole segment");
      if (segment.empty() && at < path.size())
        refuse_pattern(pattern, "would never match: requests with // in their path are refused");
      std::string text;
      if (!append_decoded(text, segment, Plus::stays))
        refuse_pattern(pattern, "has a % that is no escape; write %25");
      if (!stays_below(text) || text.find('\0') != std::string::npos)
        refuse_pattern(pattern, "would never match: requests with such a segment are refused");
      auto& child = node->literal[std::move(text)];
      if (!child) child = std::make_unique<Node>();
      node = child.get();
    }
  }
  if (ends == nullptr) ends = &node->routes;
  for (const auto& other : *ends) {
    if (other->method == route->method)
      refuse_pattern(pattern, ("means the same as \"" + other->pattern + "\"").c_str());
  }
  ends->push_back(std::move(route));
}

const Route* Router::of_method(const std::vector<std::unique_ptr<Route>>& routes,
                               std::string_view method, Match& match) {
  const Route* any = nullptr;
  const Route* get = nullptr;
  for (const auto& route : routes) {
    if (route->method == method) return route.get();
    if (route->method.empty()) any = route.get();
    if (route->method == "GET") get = route.get();
  }
  if (method == "HEAD" && get != nullptr) return get;
  if (any != nullptr) return any;
  for (const auto& route : routes) {
    if (match.path_known) match.allowed += ", ";
    match.path_known = true;
    match.allowed += route->method;
    if (route->method == "GET") match.allowed += ", HEAD";
  }
  return nullptr;
}

const Route* Router::find(const Node& node, std::string_view method,
                          const std::vector<std::string_view>& segments, std::size_t at,
                          Values& values, Match& match) {
  if (at == segments.size()) {
    if (const Route* route = of_method(node.routes, method, match)) return route;
  } else {
    if (auto child = node.literal.find(segments[at]); child != node.literal.end()) {
      if (const Route* route = find(*child->second, method, segments, at + 1, values, match))
        return route;
    }
    if (node.parameter && !segments[at].empty()) {
      values.segments.push_back(static_cast<std::uint32_t>(at));
      if (const Route* route = find(*node.parameter, method, segments, at + 1, values, match))
        return route;
      values.segments.pop_back();
    }
  }
  if (const Route* route = of_method(node.rest_routes, method, match)) {
    values.segments.push_back(static_cast<std::uint32_t>(at));
    values.rest = true;
    return route;
  }
  return nullptr;
}

Match Router::match(std::string_view method, const std::vector<std::string_view>& segments,
                    Values& values) const {
  values.segments.clear();
  values.rest = false;
  Match match;
  match.route = find(root_, method, segments, 0, values, match);
  return match;
}

}  // namespace magpie::http
