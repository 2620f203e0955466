// magpie.h: the whole core.
#pragma once

#include <magpie/chan.h>
#include <magpie/debug.h>
#include <magpie/go.h>
#include <magpie/local.h>
#include <magpie/parallel.h>
#include <magpie/runtime.h>
#include <magpie/select.h>
#include <magpie/sync.h>
#include <magpie/time.h>
