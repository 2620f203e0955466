# Warnings and sanitizers. magpie_warnings is for our own code only; the sanitizer flags go to
# everything, because code with and without them must not be mixed in one program.

add_library(magpie_warnings INTERFACE)
target_compile_options(magpie_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wshadow>
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${MAGPIE_WERROR}>>:-Werror>)

if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # Which lock guards what: src/base/annotations.h.
  target_compile_options(magpie_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wthread-safety>)
endif()

set(magpie_known_sanitizers "" "address" "undefined" "address,undefined" "thread")
if(NOT MAGPIE_SANITIZE IN_LIST magpie_known_sanitizers)
  message(FATAL_ERROR
    "MAGPIE_SANITIZE is \"${MAGPIE_SANITIZE}\"; use \"address,undefined\" or \"thread\"")
endif()

if(MAGPIE_SANITIZE)
  add_compile_options(-fsanitize=${MAGPIE_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${MAGPIE_SANITIZE})
  if(MAGPIE_SANITIZE MATCHES "undefined")
    # The check of vptr asks the kernel by a pipe whether memory is there, and finds none when there
    # are no descriptors left.
    add_compile_options(-fno-sanitize-recover=undefined -fno-sanitize=vptr)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # The instrumentation confuses GCC's flow analysis; the release build keeps this warning.
    target_compile_options(magpie_warnings INTERFACE
      $<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized>)
    if(MAGPIE_SANITIZE STREQUAL "thread")
      # GCC warns at each fence that TSan does not model it. So an order goes on the operation where
      # it can.
      target_compile_options(magpie_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-tsan>)
    endif()
  endif()
endif()
