// What host.cc and guest.cc agree on.
#pragma once

#include <magpie/chan.h>

#include <cstdint>

struct Seen {
  magpie::Chan<int> numbers;  // the guest sends 0 to 9, and closes it
  std::uint64_t goroutine;    // the guest's answers
  int procs;
};

using GuestEntry = void (*)(Seen&);
using HostEntry = int (*)(GuestEntry);
