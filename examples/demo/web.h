// web.h: the load in a browser.
#pragma once

namespace demo {

// Runs the load `rounds` times, or again and again until Ctrl-C if that is 0, and shows it on a page
// whose address it prints. Returns the exit code.
int run_web(int rounds);

}  // namespace demo
