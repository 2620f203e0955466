// with_context.h: waits that end with a context. Not part of the API.
#pragma once

#include <magpie/detail/cxx20.h>

#include <cstdint>
#include <system_error>
#include <utility>

#include <magpie/detail/api.h>
#include <magpie/detail/deadline.h>

namespace magpie {

class Context;

namespace sched {
class CancelSource;  // src/sched/cancel_source.h
}

namespace detail {

// How long a wait may last: until a time, and while a context lives.
struct WaitLimit {
  DeadlineNs deadline = kNoDeadline;
  sched::CancelSource* source = nullptr;  // null: no context
};

// The source that waits with this context register at. Null: the context never ends.
MAGPIE_API sched::CancelSource* source_of(const Context& context) noexcept;

// As Context::err(). If the deadline has passed but the run() that would have fired its timer has
// ended, this cancels the context.
MAGPIE_API std::error_code end_of(const Context& context);

// How many nanoseconds are left until the context's deadline, if the caller has to watch that
// deadline itself; else kNoDeadline.
MAGPIE_API std::int64_t time_to_watch(const Context& context) noexcept;

// Throws std::system_error with `why` and the name of the call.
[[noreturn]] MAGPIE_API void throw_over(std::error_code why, const char* call);

// Fails at once if the context is over. Else calls wait(source), which returns false if the context
// ended first. Returns true if the wait succeeded; then `error` is clear.
template <class Wait>
bool wait_with(const Context& context, std::error_code& error, Wait&& wait) {
  error = end_of(context);
  if (error) return false;
  if (std::forward<Wait>(wait)(source_of(context))) return true;
  error = end_of(context);
  return false;
}

}  // namespace detail
}  // namespace magpie
