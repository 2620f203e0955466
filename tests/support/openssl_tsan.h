// openssl_tsan.h: for programs with OpenSSL, included once in each. The system's OpenSSL is not
// instrumented: ThreadSanitizer does not see its atomics, only the memory that it frees. So what
// its own calls do is left out; our calls are not.
#pragma once

#ifdef __SANITIZE_THREAD__
extern "C" const char* __tsan_default_suppressions();   // NOLINT: ThreadSanitizer's name
extern "C" const char* __tsan_default_suppressions() {  // NOLINT
  return "called_from_lib:libssl.so.3\ncalled_from_lib:libcrypto.so.3\n";
}
#endif
