#include "base/os.h"

#include <sys/mman.h>

namespace magpie::base {

Os& os() {
  static Os calls{.map = mmap, .create_thread = pthread_create};
  return calls;
}

}  // namespace magpie::base
