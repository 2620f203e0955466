// cxx20.h: every public header includes this first, so that a program that is compiled in a way
// that Magpie cannot work with gets one clear error. The file that is included then does not exist:
// this ends the compilation, before the rest of the headers makes hundreds of errors.
#pragma once

#if __cplusplus < 202002L
#error "Magpie needs C++20: compile with -std=c++20 or later (GCC 11 or Clang 14 and newer)"
#include "the error above says what to do"
#endif

#ifndef __cpp_exceptions
#error "Magpie needs exceptions: compile what includes it without -fno-exceptions"
#include "the error above says what to do"
#endif

#ifndef __cpp_rtti
#error "Magpie needs type information: compile what includes it without -fno-rtti"
#include "the error above says what to do"
#endif
