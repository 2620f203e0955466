// crash.h: does something more before the process dies by a signal.
#pragma once

namespace magpie::trace {

// `last_words` runs on the thread that crashes, once, in the handler of SIGSEGV, SIGBUS, SIGFPE,
// SIGILL or SIGABRT. The handlers that were there before run afterwards.
void install_crash_handlers(void (*last_words)());
void remove_crash_handlers();

}  // namespace magpie::trace
