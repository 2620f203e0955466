// immortal.h: a global object that is there before any code runs and is never destroyed.
//
//     constinit base::Immortal<Registry> registry;
//
// Threads may use it while the program ends. Its construction needs no guard variable, which the
// child of a fork() could find taken.
#pragma once

namespace magpie::base {

template <class T>
union Immortal {
  constexpr Immortal() : value() {}
  constexpr ~Immortal() {}

  T value;
};

}  // namespace magpie::base
