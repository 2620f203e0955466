// code_name.h: names of functions as people read them.
#pragma once

#include <string>

namespace magpie::analysis {

// What stands in a file of symbols, as C++. What is no such name stays as it is.
std::string demangled(const char* name);

// What the user wrote, out of the name of the function that the runtime starts.
// go(f) starts a function of ours that is made for f, so f stands in its template arguments:
//   magpie::detail::start_detached<magpie::WaitGroup::go<main::{lambda()#1}>(...)>(...) is
//   main::{lambda()#1}
// Other names stay as they are, but for "::operator()() const".
std::string user_code_name(std::string name);

}  // namespace magpie::analysis
