// net.h: the network, by plain blocking calls. A goroutine that waits costs its stack and a
// registration, not a thread.
//
// Goroutines may use everything here, and so may plain threads while a runtime runs. Without a
// runtime the calls throw std::logic_error.
#pragma once

#include <magpie/detail/cxx20.h>

#include <magpie/net/address.h>
#include <magpie/net/buffered.h>
#include <magpie/net/file.h>
#include <magpie/net/inherited.h>
#include <magpie/net/pipe.h>
#include <magpie/net/resolver.h>
#include <magpie/net/stream.h>
#include <magpie/net/tcp.h>
#include <magpie/net/udp.h>
#include <magpie/net/unix.h>
#include <magpie/net/wait.h>
