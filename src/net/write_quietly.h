// write_quietly.h: writes to a pipe without SIGPIPE, which would end a program that did not ask for
// it.
#pragma once

#include <sys/types.h>

#include <cstddef>

#include "net/unwritten_parts.h"

namespace magpie::net {

// As writev() of what comes next, at most `most` bytes. A count, or a negative error number. The
// signal is blocked meanwhile, and taken off the thread if it has come: there is nothing like
// MSG_NOSIGNAL for pipes. Calls nothing of the runtime, so the thread stays the same.
ssize_t write_quietly(int fd, const UnwrittenParts& parts, std::size_t most);

}  // namespace magpie::net
