// group.h: TaskGroup, under the name that API users know.
#pragma once

#include <magpie/detail/cxx20.h>

#include <magpie/task_group.h>
