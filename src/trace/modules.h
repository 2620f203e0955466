// modules.h: which files the process has mapped to execute.
#pragma once

#include <string>

namespace magpie::trace {

// The payload of a modules block.
std::string encode_modules();
std::string program_path();

}  // namespace magpie::trace
