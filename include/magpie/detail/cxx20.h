// cxx20.h: every public header includes this first, so that a program that is compiled in a way
// that Magpie cannot work with gets one clear error.
#pragma once

#if __cplusplus < 202002L
#error "Magpie needs C++20: compile with -std=c++20 or later (GCC 11 or Clang 14 and newer)"
#endif

#ifndef __cpp_exceptions
#error "Magpie needs exceptions: compile what includes it without -fno-exceptions"
#endif

#ifndef __cpp_rtti
#error "Magpie needs type information: compile what includes it without -fno-rtti"
#endif
