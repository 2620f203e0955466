# The room tls: the library magpie_tls (magpie::tls), on OpenSSL.

find_package(OpenSSL 3.0)
if(NOT OpenSSL_FOUND)
  message(STATUS "OpenSSL 3 is not there (Debian: libssl-dev): magpie::tls is left out")
  return()
endif()

file(GLOB magpie_tls_sources CONFIGURE_DEPENDS src/tls/*.cc src/tls/*.h)
add_library(magpie_tls STATIC ${magpie_tls_sources})
add_library(magpie::tls ALIAS magpie_tls)
set_target_properties(magpie_tls PROPERTIES EXPORT_NAME tls)
target_include_directories(magpie_tls PRIVATE src)
target_link_libraries(magpie_tls PUBLIC magpie OpenSSL::SSL PRIVATE $<BUILD_INTERFACE:magpie_warnings>)
