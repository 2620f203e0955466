// cxx20.h: every public header includes this first, so that an older standard gets one clear error.
#pragma once

#if __cplusplus < 202002L
#error "Magpie needs C++20: compile with -std=c++20 or later (GCC 11 or Clang 14 and newer)"
#endif
