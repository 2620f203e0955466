// version.h: which Magpie this is. CMake reads the numbers from here.
//
//   #if MAGPIE_VERSION >= 200   // 0.2.0 or newer
//
// The macros tell which headers a program was compiled with, version() which library it runs with.
#pragma once

#include <magpie/detail/cxx20.h>

#include <magpie/detail/api.h>

#define MAGPIE_VERSION_MAJOR 0
#define MAGPIE_VERSION_MINOR 2
#define MAGPIE_VERSION_PATCH 0

// 1.2.3 is 10203.
#define MAGPIE_VERSION \
  (MAGPIE_VERSION_MAJOR * 10000 + MAGPIE_VERSION_MINOR * 100 + MAGPIE_VERSION_PATCH)

// "1.2.3"
#define MAGPIE_VERSION_STRING           \
  MAGPIE_TEXT_OF_(MAGPIE_VERSION_MAJOR) \
  "." MAGPIE_TEXT_OF_(MAGPIE_VERSION_MINOR) "." MAGPIE_TEXT_OF_(MAGPIE_VERSION_PATCH)
#define MAGPIE_TEXT_OF_(macro) MAGPIE_TEXT_(macro)
#define MAGPIE_TEXT_(text) #text

namespace magpie {

// The library's own MAGPIE_VERSION_STRING. Never blocks; anybody may call it.
MAGPIE_API const char* version() noexcept;

}  // namespace magpie
