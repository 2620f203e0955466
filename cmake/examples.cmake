# examples/*.cc: one program each, also run as a test. examples/demo/*.cc: the program of `./run demo`.

function(magpie_add_example name target)
  add_executable(${target} ${ARGN})
  target_link_libraries(${target} PRIVATE magpie::magpie magpie_warnings)
  if(MAGPIE_BUILD_TESTS)
    add_test(NAME example_${name} COMMAND ${target})
    set_tests_properties(example_${name} PROPERTIES LABELS example TIMEOUT 300)
  endif()
endfunction()

file(GLOB magpie_examples CONFIGURE_DEPENDS examples/*.cc)
foreach(source IN LISTS magpie_examples)
  cmake_path(GET source STEM name)
  magpie_add_example(${name} example_${name} ${source})
  set_target_properties(example_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/examples)
endforeach()

file(GLOB magpie_demo_sources CONFIGURE_DEPENDS examples/demo/*.cc)
if(magpie_demo_sources)
  magpie_add_example(demo magpie_demo ${magpie_demo_sources})
  if(MAGPIE_BUILD_TESTS)
    set_tests_properties(example_demo PROPERTIES RUN_SERIAL ON)  # it uses every core for many seconds
  endif()
endif()
