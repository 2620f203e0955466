// sync.h: goroutines wait for each other. Everything here works from plain threads too, which then block, and without
// a running runtime.
//
// When run() ends, goroutines that still wait are dropped: nobody waits in their place. What a dropped goroutine held,
// or was being given, stays held.
#pragma once

#include <magpie/detail/cxx20.h>

#include <magpie/cond_var.h>
#include <magpie/mutex.h>
#include <magpie/once.h>
#include <magpie/rw_mutex.h>
#include <magpie/semaphore.h>
#include <magpie/wait_group.h>
