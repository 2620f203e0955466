# Installs the build into a new prefix, then configures, builds and runs the outside program against
# it.

function(step)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    list(JOIN ARGV " " command)
    message(FATAL_ERROR "failed (${result}): ${command}")
  endif()
endfunction()

# The programs again, by what pkg-config says, from a place that the installation was moved to.
function(use_pkg_config name source)
  find_program(pkg_config pkg-config)
  if(NOT pkg_config)
    message("no pkg-config here")
    return()
  endif()
  set(query ${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${pc_dir} ${pkg_config})
  execute_process(COMMAND ${query} --modversion ${name}
    OUTPUT_VARIABLE told OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  if(NOT told STREQUAL version)
    message(FATAL_ERROR "${name}.pc tells version ${told}, not ${version}")
  endif()
  execute_process(COMMAND ${query} --cflags --libs ${name}
    OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  if(NOT EXISTS ${source_dir}/${source})
    return()
  endif()
  separate_arguments(flags UNIX_COMMAND "${flags}")
  step(${cxx_compiler} -std=c++20 -O0 ${source_dir}/${source} -o ${work_dir}/by_${name} ${flags})
  step(${work_dir}/by_${name})
endfunction()

file(REMOVE_RECURSE ${work_dir})
step(${CMAKE_COMMAND} --install ${build_dir} --prefix ${work_dir}/prefix)
step(${CMAKE_COMMAND} -S ${source_dir} -B ${work_dir}/build -G ${generator}
  -D CMAKE_MAKE_PROGRAM=${make_program}
  -D CMAKE_CXX_COMPILER=${cxx_compiler}
  -D CMAKE_PREFIX_PATH=${work_dir}/prefix
  -D expected_prefix=${work_dir}/prefix
  -D expected_version=${version}
  "-D expected_components=${components}")
step(${CMAKE_COMMAND} --build ${work_dir}/build)
step(${work_dir}/build/outside)
if(components)
  step(${work_dir}/build/outside_http)
endif()
if(EXISTS ${work_dir}/build/outside_dns)
  step(${work_dir}/build/outside_dns)
endif()

file(RENAME ${work_dir}/prefix ${work_dir}/moved)
file(GLOB_RECURSE pc_files ${work_dir}/moved/magpie*.pc)
foreach(pc_file IN LISTS pc_files)
  cmake_path(GET pc_file PARENT_PATH pc_dir)
  cmake_path(GET pc_file STEM LAST_ONLY name)
  string(REGEX REPLACE "^magpie-?" "" component ${name})
  if(component STREQUAL "")
    set(component main)
  endif()
  use_pkg_config(${name} ${component}.cc)
endforeach()
if(NOT pc_files)
  message(FATAL_ERROR "no .pc file was installed")
endif()
