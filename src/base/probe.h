// probe.h: places at which tracers such as bpftrace, perf and gdb may hook in (USDT).
//
//     MAGPIE_PROBE(park, g->id, m->p);
//
// A probe is one nop, and a note in the ELF file that tells where the nop and its arguments are. A
// tracer puts a breakpoint on the nop. Without a tracer nothing else happens: arguments are named,
// not read. So each argument must be in memory already, reached by a register ("o" asks for that),
// and has one, two, four or eight bytes. GCC takes the text of the note for many instructions, so
// short functions with a probe are marked always_inline. docs/guide/observability.md lists them.
//
// Without <sys/sdt.h> (Debian: systemtap-sdt-dev), or with MAGPIE_NO_PROBES, there are none.
#pragma once

#if !defined(MAGPIE_NO_PROBES) && !defined(MAGPIE_MODEL) && __has_include(<sys/sdt.h>)

#define STAP_SDT_ARG_CONSTRAINT o
#define SDT_USE_VARIADIC
#include <sys/sdt.h>

#define MAGPIE_PROBE(name, ...) STAP_PROBEV(magpie, name, __VA_ARGS__)

#else

#define MAGPIE_PROBE(name, ...) ((void)0)

#endif
