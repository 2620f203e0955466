// page.h: the page, made of the files of web/ and compiled into the library.
#pragma once

#include <string>
#include <string_view>

namespace magpie::view {

// The bytes of web/, put together by cmake/embed_page.cmake. Scripts and styles carry kNonceMark in
// the place of a nonce.
extern const std::string_view kPage;
inline constexpr std::string_view kNonceMark = "%NONCE%";

// A fresh random text, for one answer.
std::string make_nonce();
// The page whose scripts and styles, and no others, a browser may run under content_policy(nonce).
std::string page_with(std::string_view nonce);
std::string content_policy(std::string_view nonce);

}  // namespace magpie::view
