// sync.h: locks and other ways for goroutines to wait for each other. Plain threads may use all of
// them too, also while no runtime runs; a plain thread that waits blocks.
//
// When run() ends, it drops the goroutines that still wait. What a dropped goroutine held stays
// held. What it was being given, but had not come for, goes to the next caller.
#pragma once

#include <magpie/detail/cxx20.h>

#include <magpie/cond_var.h>
#include <magpie/mutex.h>
#include <magpie/once.h>
#include <magpie/rw_mutex.h>
#include <magpie/semaphore.h>
#include <magpie/wait_group.h>
