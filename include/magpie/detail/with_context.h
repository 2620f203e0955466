// with_context.h: calls that wait no longer than until a context is over. Not part of the API.
#pragma once

#include <magpie/detail/cxx20.h>

#include <cstdint>
#include <system_error>
#include <utility>

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

// What waits with the context look at. Null: it is never over.
sched::CancelSource* source_of(const Context& context) noexcept;

// As Context::err(). A context that should be over by now, but whose run() has ended with its
// timer, is cancelled here.
std::error_code end_of(const Context& context);

// In nanoseconds, until the context's deadline, if the caller has to look after that itself; else
// kNoDeadline.
std::int64_t time_to_watch(const Context& context) noexcept;

// std::system_error, which names the call.
[[noreturn]] void throw_over(std::error_code why, const char* call);

// A context that is over fails the call before it is tried. Else `wait(source)` returns false if it
// was over first. True: it was not, and `error` is none.
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
