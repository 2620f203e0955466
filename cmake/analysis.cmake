# The room analysis: the library magpie_analysis (magpie::analysis). It names functions with libdw
# where that is there, and reads core files with it.

magpie_add_library_room(analysis magpie STATIC)
# The times in a damaged trace may be anything. Their sums and products may leave the type: they
# wrap.
target_compile_options(magpie_analysis PRIVATE -fwrapv)
find_path(MAGPIE_LIBDW_INCLUDE_DIR elfutils/libdwfl.h)
find_library(MAGPIE_LIBDW dw)
find_library(MAGPIE_LIBELF elf)
if(MAGPIE_LIBDW_INCLUDE_DIR AND MAGPIE_LIBDW AND MAGPIE_LIBELF)
  target_compile_definitions(magpie_analysis PRIVATE MAGPIE_HAS_LIBDW=1)
  target_include_directories(magpie_analysis SYSTEM PRIVATE ${MAGPIE_LIBDW_INCLUDE_DIR})
  target_link_libraries(magpie_analysis PRIVATE dw elf)
  set_target_properties(magpie_analysis PROPERTIES MAGPIE_PC_REQUIRES "libdw libelf")
else()
  message(STATUS "libdw is not there (Debian: libdw-dev): "
    "magpie::analysis asks the program addr2line for names")
  target_compile_definitions(magpie_analysis PRIVATE MAGPIE_HAS_LIBDW=0)
endif()
