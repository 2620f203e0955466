// magpie.h: the whole core.
#pragma once

#include <magpie/debug.h>
#include <magpie/go.h>
#include <magpie/local.h>
#include <magpie/parallel.h>
#include <magpie/runtime.h>
#include <magpie/sync.h>
#include <magpie/time.h>
