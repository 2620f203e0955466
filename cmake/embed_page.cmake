# cmake -D source_dir=web -D output=page_bytes.cc -P embed_page.cmake
# Puts the page together, web/view.html with the files that its lines "<!-- include FILE -->" name,
# and writes its bytes as C++.

file(READ ${source_dir}/view.html page)
string(REGEX MATCHALL "<!-- include [a-z_.]+ -->" includes "${page}")
foreach(include IN LISTS includes)
  string(REGEX REPLACE "<!-- include ([a-z_.]+) -->" "\\1" name "${include}")
  file(READ ${source_dir}/${name} part)
  string(REPLACE "${include}" "${part}" page "${page}")
endforeach()

# By way of a file, so that the bytes are hexadecimal digits before anything looks at them.
file(WRITE ${output}.html "${page}")
file(READ ${output}.html digits HEX)
set(half_line "................................")
string(REGEX REPLACE "(${half_line}${half_line})" "\\1\n" digits "${digits}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${digits}")
file(WRITE ${output} "// Made by cmake/embed_page.cmake from web/.
#include \"view/page.h\"

namespace magpie::view {
namespace {
constexpr unsigned char kBytes[] = {
${bytes}
};
}  // namespace

const std::string_view kPage(reinterpret_cast<const char*>(kBytes), sizeof kBytes);

}  // namespace magpie::view
")
