# One OBJECT target per room of src/, with the edges of tools/rooms.txt, and the library magpie made
# of all of them but those that need other libraries: they are libraries of their own, left out
# where what they need is not there. A room that has no folder yet is passed over; one that has only
# headers becomes an INTERFACE target.

set(magpie_rooms_file ${CMAKE_CURRENT_SOURCE_DIR}/tools/rooms.txt)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${magpie_rooms_file})
file(STRINGS ${magpie_rooms_file} magpie_room_lines REGEX "^[a-z]")

add_library(magpie)  # static, or with BUILD_SHARED_LIBS shared
add_library(magpie::magpie ALIAS magpie)
target_include_directories(magpie PUBLIC
  $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(magpie PUBLIC cxx_std_20)
target_link_libraries(magpie PUBLIC Threads::Threads)

# A shared library shows what MAGPIE_API marks and nothing else. Static ones are compiled as if this
# were not here.
if(BUILD_SHARED_LIBS)
  set(CMAKE_CXX_VISIBILITY_PRESET hidden)
  set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
  # current.h needs the thread's static block for one variable, so the library's block lies there
  # anyway. It is small enough for what libc keeps free for libraries that come later by dlopen.
  set(magpie_shared_options -ftls-model=initial-exec -fno-semantic-interposition)
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:${magpie_shared_options}>")
  # Before 1.0 a minor version may change the interface.
  set(magpie_soversion ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  if(PROJECT_VERSION_MAJOR GREATER 0)
    set(magpie_soversion ${PROJECT_VERSION_MAJOR})
  endif()
endif()

# What makes a shared library of `target` one that others can rely on.
function(magpie_make_shareable target)
  if(NOT BUILD_SHARED_LIBS)
    return()
  endif()
  set_target_properties(${target} PROPERTIES
    VERSION ${PROJECT_VERSION} SOVERSION ${magpie_soversion} INSTALL_RPATH "$ORIGIN")
  # Signal handlers, handlers of fork and what runs at a thread's end outlive the last dlclose:
  # nodelete keeps their code.
  target_link_options(${target} PRIVATE
    LINKER:--no-undefined LINKER:-Bsymbolic-functions LINKER:-z,nodelete)
endfunction()
magpie_make_shareable(magpie)

set(magpie_no_red_zone "")
set(magpie_no_shadow_stack "")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(magpie_no_red_zone -mno-red-zone)
  # Compilers that mark objects as fit for Intel CET by default must not mark these: the switch has
  # no shadow stacks. A program is marked only if all its objects are.
  set(magpie_no_shadow_stack -fcf-protection=none)
endif()

# A goroutine's stack ends in a guard of 16 KiB. A function with a larger frame, or alloca, would
# jump over it into the next stack; compiled so it touches every page on the way. Functions with
# small frames stay as they are.
include(CheckCXXCompilerFlag)
set(magpie_probe_frames "")
check_cxx_compiler_flag("-Werror -fstack-clash-protection" magpie_can_probe_frames)
if(magpie_can_probe_frames)
  set(magpie_probe_frames -fstack-clash-protection)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Its default is a probe every 64 KiB.
    list(APPEND magpie_probe_frames "SHELL:--param stack-clash-protection-guard-size=12")
  endif()
  target_compile_options(magpie PUBLIC "$<$<COMPILE_LANGUAGE:CXX>:${magpie_probe_frames}>")
endif()

# Its symbols are made by assembly, which link-time optimisation does not see.
set_source_files_properties(src/context/switch.cc PROPERTIES
  COMPILE_OPTIONS -fno-lto SKIP_UNITY_BUILD_INCLUSION ON)

# What gdb knows of goroutines; the file carries the script.
set(magpie_gdb_script ${CMAKE_CURRENT_SOURCE_DIR}/debugger/magpie-gdb.py)
set_source_files_properties(src/sched/run/layout.cc PROPERTIES
  COMPILE_DEFINITIONS "MAGPIE_GDB_SCRIPT=\"${magpie_gdb_script}\""
  OBJECT_DEPENDS ${magpie_gdb_script}
  SKIP_UNITY_BUILD_INCLUSION ON)

# Probes for tracers cost a nop each, and need sys/sdt.h: src/base/probe.h.
option(MAGPIE_PROBES "Build probes for tracers (USDT), if sys/sdt.h is there" ON)
include(CheckIncludeFileCXX)
check_include_file_cxx(sys/sdt.h magpie_has_sdt)
if(NOT MAGPIE_PROBES)
  add_compile_definitions(MAGPIE_NO_PROBES)
elseif(NOT magpie_has_sdt)
  message(STATUS "sys/sdt.h is not there (Debian: systemtap-sdt-dev): the probes are left out")
endif()

# cmake/<room>.cmake calls this, and returns, when it cannot build its library. find_package passes
# the reason on to a program that asks for the component.
macro(magpie_leave_out room why)
  message(STATUS "magpie::${room} is left out: ${why}")
  set(magpie_${room}_left_out "${why}")
endmacro()

# A room with a library of its own, magpie::<room>, on top of `base`; called by cmake/<room>.cmake.
# One without public headers says STATIC: in a shared build it is a part of those that use it.
function(magpie_add_library_room room base)
  file(GLOB sources CONFIGURE_DEPENDS src/${room}/*.cc src/${room}/*.h)
  add_library(magpie_${room} ${ARGN} ${sources})
  if(NOT ARGN)
    magpie_make_shareable(magpie_${room})
  endif()
  add_library(magpie::${room} ALIAS magpie_${room})
  set_target_properties(magpie_${room} PROPERTIES EXPORT_NAME ${room} MAGPIE_BASE ${base})
  set_target_properties(magpie_${room} PROPERTIES
    UNITY_BUILD ${MAGPIE_UNITY_BUILD} UNITY_BUILD_BATCH_SIZE 12)
  target_include_directories(magpie_${room} PRIVATE src)
  target_link_libraries(magpie_${room} PUBLIC ${base} PRIVATE $<BUILD_INTERFACE:magpie_warnings>)
endfunction()

set(magpie_lower_rooms "")  # targets on the layers below the current one
set(magpie_layer_rooms "")  # targets met so far on the current layer
set(magpie_layer 0)
set(magpie_sources_found OFF)
set(magpie_library_rooms "")

foreach(line IN LISTS magpie_room_lines)
  string(REGEX REPLACE "[ \t]+" ";" fields "${line}")
  list(POP_FRONT fields room layer)
  if(layer LESS magpie_layer)
    message(FATAL_ERROR "${magpie_rooms_file}: list the rooms from the lowest layer up (${room})")
  elseif(layer GREATER magpie_layer)
    list(APPEND magpie_lower_rooms ${magpie_layer_rooms})
    set(magpie_layer_rooms "")
    set(magpie_layer ${layer})
  endif()

  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/cmake/${room}.cmake)
    string(TOUPPER MAGPIE_BUILD_${room} build_it)
    option(${build_it} "Build magpie::${room} if what it needs is there" ON)
    if(${build_it})
      include(cmake/${room}.cmake)
    else()
      magpie_leave_out(${room} "${build_it} was OFF")
    endif()
    list(APPEND magpie_library_rooms ${room})
    continue()
  endif()

  file(GLOB_RECURSE sources CONFIGURE_DEPENDS src/${room}/*.cc src/${room}/*.S)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS src/${room}/*.h)
  set(target magpie_${room})
  if(sources)
    add_library(${target} OBJECT ${sources} ${headers})
    set_target_properties(${target} PROPERTIES
      UNITY_BUILD ${MAGPIE_UNITY_BUILD} UNITY_BUILD_BATCH_SIZE 12)
    target_include_directories(${target} PRIVATE src PUBLIC include)
    target_link_libraries(${target}
      PUBLIC Threads::Threads ${magpie_lower_rooms} PRIVATE magpie_warnings)
    # The stack switch relies on frame pointers for its unwind information, and on functions that
    # switch having no red zone.
    target_compile_options(${target} PRIVATE
      -fno-omit-frame-pointer ${magpie_no_red_zone} ${magpie_no_shadow_stack}
      ${magpie_probe_frames})
    foreach(peer IN LISTS fields)
      if(TARGET magpie_${peer})
        target_link_libraries(${target} PUBLIC magpie_${peer})
      endif()
    endforeach()
    target_sources(magpie PRIVATE $<TARGET_OBJECTS:${target}>)
    set(magpie_sources_found ON)
  elseif(headers)
    add_library(${target} INTERFACE ${headers})
    target_link_libraries(${target} INTERFACE ${magpie_lower_rooms})
  else()
    continue()
  endif()
  list(APPEND magpie_layer_rooms ${target})
endforeach()

if(NOT magpie_sources_found)
  message(FATAL_ERROR "No room under src/ has a source file")
endif()
