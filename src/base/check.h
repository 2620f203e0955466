// check.h: what to do when the impossible, or the unforgivable, happens.
//
// fatal()        a message for a person on stderr, then abort(). Safe in signal handlers: no
//                allocation.
// MAGPIE_CHECK   a fact that only a bug in the runtime can break; always on.
// MAGPIE_DCHECK  the same where the check costs too much for release builds.
#pragma once

#include <cstdarg>
#include <string_view>

namespace magpie::base {

// Prints "magpie: <message>\n" to stderr with one write and aborts.
[[noreturn, gnu::format(printf, 1, 2), gnu::cold]] void fatal(const char* format, ...);

// Prints "magpie: <message>\n" to stderr with one write.
[[gnu::format(printf, 1, 2), gnu::cold]] void warn(const char* format, ...);

// Where messages go instead of stderr; null: stderr. Returns what was there.
using LogHook = void (*)(std::string_view line);
LogHook set_log_hook(LogHook hook);

[[noreturn, gnu::cold]] void check_failed(const char* fact, const char* file, int line);

}  // namespace magpie::base

#define MAGPIE_CHECK(fact) \
  (__builtin_expect(!(fact), 0) ? ::magpie::base::check_failed(#fact, __FILE__, __LINE__) : (void)0)

#ifdef NDEBUG
#define MAGPIE_DCHECK(fact) ((void)sizeof(!(fact)))
#else
#define MAGPIE_DCHECK(fact) MAGPIE_CHECK(fact)
#endif
