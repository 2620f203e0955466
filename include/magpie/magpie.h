// magpie.h: the whole core.
#pragma once

#include <magpie/detail/cxx20.h>

#include <magpie/blocking.h>
#include <magpie/chan.h>
#include <magpie/context.h>
#include <magpie/debug.h>
#include <magpie/defer.h>
#include <magpie/go.h>
#include <magpie/local.h>
#include <magpie/parallel.h>
#include <magpie/patterns.h>
#include <magpie/result_group.h>
#include <magpie/runtime.h>
#include <magpie/select.h>
#include <magpie/signals.h>
#include <magpie/sync.h>
#include <magpie/task_group.h>
#include <magpie/time.h>
#include <magpie/trace.h>
#include <magpie/version.h>
