# The room view: the library magpie_view (magpie::view), on magpie::http, with the page of web/
# compiled in.

if(NOT TARGET magpie_http)
  magpie_leave_out(view "it needs http, and ${magpie_http_left_out}")
  return()
endif()

if(NOT TARGET magpie_analysis)
  magpie_leave_out(view "it needs analysis, and ${magpie_analysis_left_out}")
  return()
endif()

magpie_add_library_room(view magpie_http)
if(BUILD_SHARED_LIBS)
  target_link_libraries(magpie_view PRIVATE magpie_analysis)
else()
  target_link_libraries(magpie_view PUBLIC magpie_analysis)
  set_target_properties(magpie_view PROPERTIES
    MAGPIE_PC_REQUIRES "magpie-analysis = ${PROJECT_VERSION}")
endif()

file(GLOB magpie_web_files CONFIGURE_DEPENDS web/*.html web/*.css web/*.js)
set(magpie_page_bytes ${CMAKE_CURRENT_BINARY_DIR}/page_bytes.cc)
add_custom_command(OUTPUT ${magpie_page_bytes}
  COMMAND ${CMAKE_COMMAND}
    -D source_dir=${CMAKE_CURRENT_SOURCE_DIR}/web -D output=${magpie_page_bytes}
    -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/embed_page.cmake
  DEPENDS ${magpie_web_files} ${CMAKE_CURRENT_SOURCE_DIR}/cmake/embed_page.cmake
  VERBATIM)
target_sources(magpie_view PRIVATE ${magpie_page_bytes})
set_source_files_properties(${magpie_page_bytes} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
