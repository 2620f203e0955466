# The room tls: the library magpie_tls (magpie::tls), on OpenSSL.

find_package(OpenSSL 3.0)
if(NOT OpenSSL_FOUND)
  magpie_leave_out(tls "OpenSSL 3 was missing (Debian: libssl-dev)")
  return()
endif()
magpie_add_library_room(tls magpie)
target_link_libraries(magpie_tls PUBLIC OpenSSL::SSL)
set_target_properties(magpie_tls PROPERTIES MAGPIE_PC_REQUIRES "openssl >= 3.0")
