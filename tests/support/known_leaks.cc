// known_leaks.cc: what LeakSanitizer finds in tests and nobody has lost. In every test program.
//
// Dump_OfAGoroutineThatIsDroppedMeanwhile: goroutines that are dropped while they dump.
// __res_context_send: glibc keeps it for each thread that asks a name server. A resolver thread may
// be on its way out as the process ends; LeakSanitizer does not look at its memory any more, and
// glibc has not freed it yet.

#ifdef __SANITIZE_ADDRESS__
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() {
  return "leak:Dump_OfAGoroutineThatIsDroppedMeanwhile\nleak:__res_context_send\n";
}
#endif
