# The room tls: the library magpie_tls (magpie::tls), on OpenSSL.

find_package(OpenSSL 3.0)
if(NOT OpenSSL_FOUND)
  magpie_leave_out(tls "OpenSSL 3 was missing (Debian: libssl-dev)")
  return()
endif()
magpie_add_library_room(tls magpie)
# No public header includes OpenSSL's, so a shared library needs it for itself only.
if(BUILD_SHARED_LIBS)
  target_link_libraries(magpie_tls PRIVATE OpenSSL::SSL)
else()
  target_link_libraries(magpie_tls PUBLIC OpenSSL::SSL)
endif()
set_target_properties(magpie_tls PROPERTIES MAGPIE_PC_REQUIRES "openssl >= 3.0")
