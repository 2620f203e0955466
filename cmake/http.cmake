# The room http: the library magpie_http (magpie::http), on magpie::tls. Boost is needed to build
# it, not to use it.

find_path(MAGPIE_BOOST_INCLUDE_DIR boost/beast/http/basic_parser.hpp)
if(NOT MAGPIE_BOOST_INCLUDE_DIR)
  magpie_leave_out(http "Boost headers were missing (Debian: libboost-dev)")
  return()
endif()
if(NOT TARGET magpie_tls)
  magpie_leave_out(http "it needs tls, and ${magpie_tls_left_out}")
  return()
endif()

magpie_add_library_room(http magpie_tls)
target_include_directories(magpie_http SYSTEM PRIVATE ${MAGPIE_BOOST_INCLUDE_DIR})
