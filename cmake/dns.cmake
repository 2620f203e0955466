# The room dns: the library magpie_dns (magpie::dns), on c-ares.

find_path(MAGPIE_CARES_INCLUDE_DIR ares.h)
find_library(MAGPIE_CARES_LIBRARY cares)
if(NOT MAGPIE_CARES_INCLUDE_DIR OR NOT MAGPIE_CARES_LIBRARY)
  magpie_leave_out(dns "c-ares was missing (Debian: libc-ares-dev)")
  return()
endif()
magpie_add_library_room(dns magpie)
target_include_directories(magpie_dns SYSTEM PRIVATE ${MAGPIE_CARES_INCLUDE_DIR})
target_link_libraries(magpie_dns PRIVATE
  $<BUILD_INTERFACE:${MAGPIE_CARES_LIBRARY}> $<INSTALL_INTERFACE:cares>)
set_target_properties(magpie_dns PROPERTIES MAGPIE_PC_REQUIRES libcares)
