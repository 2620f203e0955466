// debug.h: everything that shows what the runtime is doing.
#pragma once

#include <magpie/stats.h>
