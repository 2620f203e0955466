# The room http: the library magpie_http (magpie::http), on magpie::tls. Boost is needed to build
# it, not to use it.

find_path(MAGPIE_BOOST_INCLUDE_DIR boost/beast/http/basic_parser.hpp)
if(NOT MAGPIE_BOOST_INCLUDE_DIR)
  message(STATUS "boost/beast is not there (Debian: libboost-dev): magpie::http is left out")
  return()
endif()
if(NOT TARGET magpie_tls)
  message(STATUS "magpie::http is left out, as magpie::tls is")
  return()
endif()

magpie_add_library_room(http magpie_tls)
target_include_directories(magpie_http SYSTEM PRIVATE ${MAGPIE_BOOST_INCLUDE_DIR})
