// patterns.h: ready-made ways to share work: pools, limits, loops.
#pragma once

#include <magpie/detail/cxx20.h>

#include <magpie/circuit_breaker.h>
#include <magpie/parallel.h>
#include <magpie/pool.h>
#include <magpie/rate_limiter.h>
#include <magpie/single_flight.h>
#include <magpie/worker_pool.h>
