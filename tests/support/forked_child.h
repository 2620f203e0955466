// forked_child.h: what sanitizers do to the child of a fork in a program with threads.
#pragma once

namespace magpie::support {

// Why the child cannot make threads and use memory as usual in this build; null: it can.
inline const char* trouble_of_forked_child() {
#ifdef __SANITIZE_THREAD__
  return "ThreadSanitizer does not let the child make threads";
#elif defined(__SANITIZE_ADDRESS__)
  return "the child may find AddressSanitizer's own locks taken, for ever";
#else
  return nullptr;
#endif
}

}  // namespace magpie::support
