# What `cmake --install` gives: headers, the library, and a package for find_package(magpie).

include(CMakePackageConfigHelpers)

set(magpie_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/magpie)

install(TARGETS magpie EXPORT magpieTargets)
foreach(room IN LISTS magpie_library_rooms)
  if(TARGET magpie_${room})
    install(TARGETS magpie_${room} EXPORT magpie_${room}_targets)
    install(EXPORT magpie_${room}_targets NAMESPACE magpie:: DESTINATION ${magpie_package_dir})
  endif()
endforeach()
install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(EXPORT magpieTargets NAMESPACE magpie:: DESTINATION ${magpie_package_dir})

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
