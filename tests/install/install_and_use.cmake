# Installs the build into a new prefix, then configures, builds and runs the outside program against
# it.

function(step)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    list(JOIN ARGV " " command)
    message(FATAL_ERROR "failed (${result}): ${command}")
  endif()
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
