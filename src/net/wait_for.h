// wait_for.h: a goroutine waits for a descriptor that is not ours.
#pragma once

#include <system_error>

#include <magpie/detail/api.h>
#include <magpie/detail/deadline.h>

namespace magpie {
class Context;
}

namespace magpie::net {

// For POLLIN or POLLOUT. ETIMEDOUT at the deadline, the context's error when that is over. Several
// may wait for the same one.
std::error_code wait_for(int fd, short events, detail::DeadlineNs deadline, const Context* context);

// The same on plain threads too, where perhaps no runtime runs.
MAGPIE_API std::error_code wait_anywhere(int fd, short events, detail::DeadlineNs deadline,
                                         const Context* context);

}  // namespace magpie::net
