// text.h: small matters of HTTP's texts.
#pragma once

#include <string>
#include <string_view>

#include <magpie/detail/api.h>

namespace magpie::http {

inline bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

// Equal without regard to the case of ASCII letters.
MAGPIE_API bool same_name(std::string_view a, std::string_view b) noexcept;

// Whether a list with commas, as that of the header Connection, has an option.
bool has_option(std::string_view list, std::string_view option) noexcept;

// Asks for a tunnel, which neither server nor client makes.
inline constexpr std::string_view kTunnelMethod = "CONNECT";

// May be the name, or the value, of a header field.
bool is_field_name(std::string_view text) noexcept;
bool is_field_value(std::string_view text) noexcept;

enum class Plus { stays, is_space };
// Appends the text with its %-escapes decoded. False: an escape is malformed.
bool append_decoded(std::string& to, std::string_view text, Plus plus);
// Whether the text of a query, decoded, is `decoded`. Also false if an escape is malformed.
bool decodes_to(std::string_view text, std::string_view decoded) noexcept;

// Makes it empty and gives its memory back, which assigning an empty one does not.
inline void give_back(std::string& text) noexcept { std::string().swap(text); }

void append_number(std::string& to, unsigned long long number);

// The date as header fields have it, 29 characters: "Tue, 15 Nov 1994 08:12:31 GMT".
void append_date(std::string& to, long long unix_seconds);

}  // namespace magpie::http
