// group.h: TaskGroup, under the name that API users know.
#pragma once

#include <magpie/task_group.h>
