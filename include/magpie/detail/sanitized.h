// sanitized.h: a program and the library must be built with the same sanitizer. Not part of the
// API.
//
// A library that switches stacks has to tell AddressSanitizer and ThreadSanitizer of every switch,
// so it must be compiled with them. A program with a sanitizer, linked to a library without, would
// crash or report nonsense. So the names of the functions that every program needs say which
// library they want, and such a program does not link:
//
//   undefined reference to
//   `magpie::detail::run_main[abi:of_a_library_built_with_MAGPIE_SANITIZE_thread](...)'
#pragma once

#include <magpie/detail/cxx20.h>

#if defined(__SANITIZE_ADDRESS__)
#define MAGPIE_SANITIZED_ADDRESS 1
#elif defined(__SANITIZE_THREAD__)
#define MAGPIE_SANITIZED_THREAD 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MAGPIE_SANITIZED_ADDRESS 1
#elif __has_feature(thread_sanitizer)
#define MAGPIE_SANITIZED_THREAD 1
#endif
#endif

#if defined(MAGPIE_SANITIZED_ADDRESS)
#define MAGPIE_BUILT_ALIKE gnu::abi_tag("of_a_library_built_with_MAGPIE_SANITIZE_address")
#elif defined(MAGPIE_SANITIZED_THREAD)
#define MAGPIE_BUILT_ALIKE gnu::abi_tag("of_a_library_built_with_MAGPIE_SANITIZE_thread")
#else
#define MAGPIE_BUILT_ALIKE
#endif
