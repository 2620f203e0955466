# examples/*.cc: one program each, also run as a test. examples/demo/*.cc: the program of `./run
# demo`.

function(magpie_add_example name target)
  add_executable(${target} ${ARGN})
  target_link_libraries(${target} PRIVATE magpie::magpie magpie_warnings)
  if(MAGPIE_BUILD_TESTS)
    add_test(NAME example_${name} COMMAND ${target})
    set_tests_properties(example_${name} PROPERTIES LABELS example TIMEOUT 300)
  endif()
endfunction()

# Needs a library, and a server beside it while it is tested.
function(magpie_add_postgres_example)
  find_package(PostgreSQL QUIET)
  if(NOT PostgreSQL_FOUND OR CMAKE_CROSSCOMPILING)
    message(STATUS "libpq is not there (Debian: libpq-dev): the example postgres is left out")
    return()
  endif()
  add_executable(example_postgres examples/postgres.cc)
  target_link_libraries(example_postgres PRIVATE
    magpie::magpie magpie_warnings PostgreSQL::PostgreSQL)
  set_target_properties(example_postgres PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/examples)
  if(MAGPIE_BUILD_TESTS)
    add_test(NAME example_postgres
      COMMAND ${PROJECT_SOURCE_DIR}/tests/postgres $<TARGET_FILE:example_postgres>)
    set_tests_properties(example_postgres PROPERTIES LABELS example TIMEOUT 300 SKIP_RETURN_CODE 77)
  endif()
endfunction()

set(magpie_http_examples reverse_proxy crawler)
file(GLOB magpie_examples CONFIGURE_DEPENDS examples/*.cc)
foreach(source IN LISTS magpie_examples)
  cmake_path(GET source STEM name)
  if(name STREQUAL "postgres")
    magpie_add_postgres_example()
    continue()
  endif()
  # Examples of HTTP are named so, or listed above.
  if(name MATCHES "^http_" OR name IN_LIST magpie_http_examples)
    if(NOT TARGET magpie_http)
      continue()
    endif()
    set(magpie_example_library magpie::http)
  else()
    set(magpie_example_library magpie::magpie)
  endif()
  magpie_add_example(${name} example_${name} ${source})
  # What all of them begin with: the first precompiles it for the others.
  if(DEFINED magpie_precompiled_example)
    target_precompile_headers(example_${name} REUSE_FROM ${magpie_precompiled_example})
  else()
    target_precompile_headers(example_${name} PRIVATE <magpie/magpie.h>)
    set(magpie_precompiled_example example_${name})
  endif()
  target_link_libraries(example_${name} PRIVATE ${magpie_example_library})
  set_target_properties(example_${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/examples)
endforeach()

file(GLOB magpie_demo_sources CONFIGURE_DEPENDS examples/demo/*.cc)
if(magpie_demo_sources)
  magpie_add_example(demo magpie_demo ${magpie_demo_sources})
  if(TARGET magpie_view)
    target_link_libraries(magpie_demo PRIVATE magpie::view)
  endif()
  target_compile_definitions(magpie_demo PRIVATE DEMO_HAS_WEB=$<TARGET_EXISTS:magpie_view>)
  if(MAGPIE_BUILD_TESTS)
    # it uses every core for many seconds
    set_tests_properties(example_demo PROPERTIES RUN_SERIAL ON)
  endif()
endif()
