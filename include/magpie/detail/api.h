// api.h: MAGPIE_API marks what a shared libmagpie offers to programs. All else in it is hidden.
//
// Functions that a header declares and a source file defines carry it; so do classes with such
// members, and exceptions, which are recognised across libraries by it. Templates and inline
// functions do not need it. So do the few functions of src/ that magpie::http and its like use.
// tests/install/shared tells what was forgotten.
#pragma once

#include <magpie/detail/cxx20.h>

#define MAGPIE_API [[gnu::visibility("default")]]
