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

# Examples with other people's libraries, and where to get those. `beside` is a script that runs the
# example's test beside a server; `library` is Magpie's.
function(magpie_add_interop_example name library found package beside)
  if(NOT found OR NOT TARGET ${library} OR CMAKE_CROSSCOMPILING)
    message(STATUS "the example ${name} is left out (Debian: ${package})")
    return()
  endif()
  add_executable(example_${name} examples/${name}.cc)
  target_link_libraries(example_${name} PRIVATE ${library} magpie_warnings ${ARGN})
  set_target_properties(example_${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/examples)
  if(MAGPIE_BUILD_TESTS)
    add_test(NAME example_${name} COMMAND ${beside} $<TARGET_FILE:example_${name}>)
    set_tests_properties(example_${name} PROPERTIES LABELS example TIMEOUT 300 SKIP_RETURN_CODE 77)
  endif()
endfunction()

set(magpie_interop_examples
  asio curl_easy curl_multi grpc postgres postgres_waiting redis spdlog)
find_package(PostgreSQL QUIET)
foreach(name IN ITEMS postgres postgres_waiting)
  magpie_add_interop_example(${name} magpie::magpie "${PostgreSQL_FOUND}" libpq-dev
    ${PROJECT_SOURCE_DIR}/tests/postgres PostgreSQL::PostgreSQL)
endforeach()
find_package(CURL QUIET)
foreach(name IN ITEMS curl_easy curl_multi)
  magpie_add_interop_example(${name} magpie::http "${CURL_FOUND}" libcurl4-openssl-dev ""
    CURL::libcurl)
endforeach()
find_package(spdlog QUIET)
magpie_add_interop_example(spdlog magpie::magpie "${spdlog_FOUND}" libspdlog-dev "" spdlog::spdlog)
find_path(HIREDIS_INCLUDE_DIR hiredis/hiredis.h)
find_library(HIREDIS_LIBRARY hiredis)
magpie_add_interop_example(redis magpie::magpie "${HIREDIS_LIBRARY}" libhiredis-dev
  ${PROJECT_SOURCE_DIR}/tests/redis ${HIREDIS_LIBRARY})
magpie_add_interop_example(asio magpie::magpie "${MAGPIE_BOOST_INCLUDE_DIR}" libboost-dev "")
if(TARGET example_asio)
  target_include_directories(example_asio SYSTEM PRIVATE ${MAGPIE_BOOST_INCLUDE_DIR})
endif()

# The package for CMake of Debian's gRPC needs packages that are not among those it depends on.
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
  pkg_check_modules(GRPC QUIET IMPORTED_TARGET grpc++ protobuf)
endif()
find_program(PROTOC protoc)
find_program(GRPC_CPP_PLUGIN grpc_cpp_plugin)
if(NOT GRPC_CPP_PLUGIN OR NOT PROTOC)
  set(GRPC_FOUND FALSE)
endif()
magpie_add_interop_example(grpc magpie::magpie "${GRPC_FOUND}"
  "libgrpc++-dev libprotobuf-dev protobuf-compiler-grpc pkg-config" "" PkgConfig::GRPC)
if(TARGET example_grpc)
  set(dir ${CMAKE_CURRENT_BINARY_DIR}/examples/protobuf)
  file(MAKE_DIRECTORY ${dir})
  set(generated ${dir}/squares.pb.cc ${dir}/squares.grpc.pb.cc)
  add_custom_command(OUTPUT ${generated} ${dir}/squares.pb.h ${dir}/squares.grpc.pb.h
    COMMAND ${PROTOC} --proto_path=${PROJECT_SOURCE_DIR}/examples --cpp_out=${dir}
      --grpc_out=${dir} --plugin=protoc-gen-grpc=${GRPC_CPP_PLUGIN} squares.proto
    DEPENDS examples/squares.proto)
  set_source_files_properties(${generated} PROPERTIES COMPILE_OPTIONS "-w;-O0;-g0")
  target_sources(example_grpc PRIVATE ${generated})
  target_include_directories(example_grpc SYSTEM PRIVATE ${dir})
  target_link_options(example_grpc PRIVATE LINKER:--as-needed)
endif()

set(magpie_http_examples crawler)
file(GLOB magpie_examples CONFIGURE_DEPENDS examples/*.cc)
foreach(source IN LISTS magpie_examples)
  cmake_path(GET source STEM name)
  if(name IN_LIST magpie_interop_examples)
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

if(TARGET magpie_http)
  magpie_add_example(reverse_proxy example_reverse_proxy examples/reverse_proxy/main.cc)
  target_link_libraries(example_reverse_proxy PRIVATE magpie::http)
  set_target_properties(example_reverse_proxy PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/examples)
endif()

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
