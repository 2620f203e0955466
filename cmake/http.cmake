# The room http: the library magpie_http (magpie::http), on magpie::tls. Boost is needed to build it, not to use it.

find_path(MAGPIE_BOOST_INCLUDE_DIR boost/beast/http/basic_parser.hpp)
if(NOT MAGPIE_BOOST_INCLUDE_DIR)
  message(STATUS "boost/beast is not there (Debian: libboost-dev): magpie::http is left out")
  return()
endif()
if(NOT TARGET magpie_tls)
  message(STATUS "magpie::http is left out, as magpie::tls is")
  return()
endif()

file(GLOB magpie_http_sources CONFIGURE_DEPENDS src/http/*.cc src/http/*.h)
add_library(magpie_http STATIC ${magpie_http_sources})
add_library(magpie::http ALIAS magpie_http)
set_target_properties(magpie_http PROPERTIES EXPORT_NAME http)
target_include_directories(magpie_http PRIVATE src)
target_include_directories(magpie_http SYSTEM PRIVATE ${MAGPIE_BOOST_INCLUDE_DIR})
target_link_libraries(magpie_http PUBLIC magpie_tls PRIVATE $<BUILD_INTERFACE:magpie_warnings>)
