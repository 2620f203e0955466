// calibrate.h: measures on this machine what the steps of the scheduler cost.
//
// Every figure is the smallest of many short batches: another program on the machine can only make
// a batch slower. What is far is taken as three times what is near.
#pragma once

#include "lab/costs.h"

namespace magpie::lab {

// Not from inside magpie::run().
Costs calibrate();

}  // namespace magpie::lab
