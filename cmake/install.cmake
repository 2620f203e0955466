# What `cmake --install` gives: headers, the libraries, a package for find_package(magpie), and a
# file for pkg-config for each library: magpie.pc, magpie-http.pc and so on.

include(CMakePackageConfigHelpers)

set(magpie_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/magpie)

install(TARGETS magpie EXPORT magpieTargets)
if(BUILD_SHARED_LIBS)
  set(magpie_analysis_left_out "in a shared build it is a part of view")
  set(magpie_lab_left_out "in a shared build it is a part of the command magpie")
endif()
foreach(room IN LISTS magpie_library_rooms)
  if(TARGET magpie_${room} AND NOT magpie_${room}_left_out)
    install(TARGETS magpie_${room} EXPORT magpie_${room}_targets)
    install(EXPORT magpie_${room}_targets NAMESPACE magpie:: DESTINATION ${magpie_package_dir})
  endif()
endforeach()
install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
# The named module, which a program compiles itself.
install(FILES modules/magpie.cppm DESTINATION ${CMAKE_INSTALL_DATADIR}/magpie)
# For programs whose copy gdb may not load by itself: (gdb) source .../magpie-gdb.py
install(FILES debugger/magpie-gdb.py DESTINATION ${CMAKE_INSTALL_DATADIR}/magpie)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(EXPORT magpieTargets NAMESPACE magpie:: DESTINATION ${magpie_package_dir})

# The components, each with why it is not there (empty: it is there) and the component that it
# needs.
set(magpie_component_lines "")
foreach(room IN LISTS magpie_library_rooms)
  if(TARGET magpie_${room} AND NOT magpie_${room}_left_out)
    get_target_property(base magpie_${room} MAGPIE_BASE)
    string(REGEX REPLACE "^magpie_?" "" base ${base})
    string(APPEND magpie_component_lines "set(magpie_${room}_base \"${base}\")\n")
  endif()
  string(APPEND magpie_component_lines
    "set(magpie_${room}_left_out [[${magpie_${room}_left_out}]])\n")
endforeach()
configure_package_config_file(
  cmake/magpieConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/magpieConfig.cmake
  INSTALL_DESTINATION ${magpie_package_dir})
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/magpieConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${CMAKE_CURRENT_BINARY_DIR}/magpieConfig.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/magpieConfigVersion.cmake
  DESTINATION ${magpie_package_dir})

# The paths in a .pc file start at the file itself, so that an installation can be moved.
foreach(dir IN ITEMS LIBDIR INCLUDEDIR)
  set(magpie_pc_${dir} ${CMAKE_INSTALL_${dir}})
  if(NOT IS_ABSOLUTE ${CMAKE_INSTALL_${dir}})
    cmake_path(RELATIVE_PATH magpie_pc_${dir} BASE_DIRECTORY ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
    string(PREPEND magpie_pc_${dir} "\${pcfiledir}/")
  endif()
endforeach()

function(magpie_install_pc target)
  string(REPLACE _ - name ${target})
  get_target_property(base ${target} MAGPIE_BASE)
  get_target_property(requires ${target} MAGPIE_PC_REQUIRES)
  set(pc_requires "")
  set(pc_requires_private "")
  if(base)
    string(REPLACE _ - base ${base})
    list(APPEND pc_requires "${base} = ${PROJECT_VERSION}")
  endif()
  # A shared library brings what it needs itself; then only a static link has to name it.
  if(requires AND BUILD_SHARED_LIBS)
    list(APPEND pc_requires_private ${requires})
  elseif(requires)
    list(APPEND pc_requires ${requires})
  endif()
  list(JOIN pc_requires ", " pc_requires)
  list(JOIN pc_requires_private ", " pc_requires_private)
  set(pc_flags "")
  if(target STREQUAL "magpie")
    list(JOIN magpie_probe_frames " " pc_flags)
    string(REPLACE "SHELL:" "" pc_flags "${pc_flags}")
  endif()
  configure_file(cmake/magpie.pc.in ${name}.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${name}.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()

magpie_install_pc(magpie)
foreach(room IN LISTS magpie_library_rooms)
  if(TARGET magpie_${room} AND NOT magpie_${room}_left_out)
    magpie_install_pc(magpie_${room})
  endif()
endforeach()
