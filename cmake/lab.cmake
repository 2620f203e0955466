# The room lab: the library magpie_lab (magpie::lab), a simulation of the scheduler's policy. It
# reads traces, so it stands on magpie::analysis.

if(NOT TARGET magpie_analysis)
  magpie_leave_out(lab "it needs analysis, and ${magpie_analysis_left_out}")
  return()
endif()

magpie_add_library_room(lab magpie_analysis STATIC)
set_target_properties(magpie_lab PROPERTIES
  MAGPIE_PC_REQUIRES "magpie-analysis = ${PROJECT_VERSION}")
