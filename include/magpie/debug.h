// debug.h: everything that shows what the runtime is doing.
#pragma once

#include <magpie/detail/cxx20.h>

#include <magpie/dump.h>
#include <magpie/profile.h>
#include <magpie/stats.h>
