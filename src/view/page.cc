#include "view/page.h"

#include <cstddef>
#include <cstdio>
#include <random>

namespace magpie::view {

std::string make_nonce() {
  std::random_device random;
  char text[33];
  std::snprintf(text, sizeof text, "%08x%08x%08x%08x", random(), random(), random(), random());
  return text;
}

std::string page_with(std::string_view nonce) {
  std::string page;
  page.reserve(kPage.size() + 256);
  std::string_view rest = kPage;
  for (std::size_t at; (at = rest.find(kNonceMark)) != std::string_view::npos;) {
    page += rest.substr(0, at);
    page += nonce;
    rest.remove_prefix(at + kNonceMark.size());
  }
  page += rest;
  return page;
}

std::string content_policy(std::string_view nonce) {
  const std::string own = "'nonce-" + std::string(nonce) + "'";
  return "default-src 'none'; script-src " + own + "; style-src " + own +
         "; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
         "frame-ancestors 'none'";
}

}  // namespace magpie::view
