// crash.h: does something more before the process dies by a signal.
#pragma once

namespace magpie::trace {

// `last_words` runs on the thread that crashes, once, in the handler of SIGSEGV, SIGBUS, SIGFPE,
// SIGILL or SIGABRT. The handlers that were there before run afterwards.
void install_crash_handlers(void (*last_words)());
void remove_crash_handlers();
void forget_crash_handlers();  // in the child of a fork()

// Calls change(), which installs or removes other handlers of these signals, with ours out of the
// way. Handlers that are not removed in the order of their arrival would call each other for ever.
void change_below_crash_handlers(void (*change)());

}  // namespace magpie::trace
