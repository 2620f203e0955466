// web.h: the load in a browser.
#pragma once

namespace demo {

// Runs the load `rounds` times, or again and again until Ctrl-C if that is 0. Prints the address of
// a page that shows it. Returns the exit code.
int run_web(int rounds);

}  // namespace demo
