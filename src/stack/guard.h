// guard.h: memory below a stack that faults when a goroutine runs out of stack.
//
// Three ways, tried in this order. MAGPIE_GUARDS=advise|protect|shared picks a later one, for
// tests:
//   advise    madvise(MADV_GUARD_INSTALL), Linux 6.13: marks page-table entries and does not split
//             the mapping. So a million guarded stacks still are a handful of mappings.
//   protect   mprotect(PROT_NONE): splits the mapping in two per stack. Works until
//             vm.max_map_count (65,530) is used up, except for a reserve for the rest of the
//             program and our next slabs. From then on:
//   shared    no guard between the stacks of a slab, only below its first. An overflow runs into
//             the neighbour: the documented weakness of old kernels with more than about 30,000
//             stacks.
#pragma once

#include <cstddef>

namespace magpie::stack {

enum class GuardKind { advise, protect, shared };

// 16 KiB: a function with a large frame should hit it rather than jump over it.
std::size_t guard_bytes();

// What install_guard() does now. It falls from advise to protect on the first refusal, and to
// shared when mappings run out. It never comes back.
GuardKind guard_kind();

// Takes the choice in MAGPIE_GUARDS, or the best that this kernel has. No stack exists yet.
void choose_guards();

// Makes [memory, memory + guard_bytes()) fault, unless guards are shared.
void install_guard(std::byte* memory);

// A guard has gone with its mapping.
void forget_guard();

// The guard at the low end of a slab. It is worth a mapping of its own under every kind but advise.
void install_slab_guard(std::byte* memory);

}  // namespace magpie::stack
