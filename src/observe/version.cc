#include <magpie/version.h>

namespace magpie {

const char* version() noexcept { return MAGPIE_VERSION_STRING; }

}  // namespace magpie
