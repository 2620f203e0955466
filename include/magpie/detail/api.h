// api.h: MAGPIE_API marks what a shared libmagpie offers to programs. All else in it is hidden.
//
// Functions that a header declares and a source file defines carry it. So do classes with such
// members, the few functions of src/ that magpie::http and the other libraries use, and exceptions,
// which are recognised across libraries by it. Templates and inline functions do not need it.
// tests/install/shared/check names the marks that are missing.
#pragma once

#include <magpie/detail/cxx20.h>

#define MAGPIE_API [[gnu::visibility("default")]]
