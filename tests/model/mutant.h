// mutant.h: parts of a model, or of its atomics, that a mutant weakens. The model then has to fail.
//
//   if (chosen<"MUTANT_NO_CALL">()) ask_for = MutexWord::held;
//
// The first argument of the program names the mutant to run; tests/CMakeLists.txt makes a test of
// each.
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace model {

// One for each name that the program's source asks for. Plain, and set before any model runs:
// asking is no step of it.
class Mutant {
 public:
  explicit Mutant(const char* name) : name_(name), next_(all_) { all_ = this; }
  Mutant(const Mutant&) = delete;
  Mutant& operator=(const Mutant&) = delete;

  bool is_chosen() const { return chosen_; }

  // Ends by a signal if nothing asks for that name: the tests of mutants have to exit with 1, and a
  // misspelt name shall not pass for a model that found an error.
  static void choose(std::string_view name) {
    for (Mutant* mutant = all_; mutant != nullptr; mutant = mutant->next_) {
      if (name != mutant->name_) continue;
      mutant->chosen_ = true;
      return;
    }
    std::fprintf(stderr, "no mutant %.*s; there are:\n", static_cast<int>(name.size()),
                 name.data());
    for (Mutant* mutant = all_; mutant != nullptr; mutant = mutant->next_) {
      std::fprintf(stderr, "  %s\n", mutant->name_);
    }
    std::abort();
  }

 private:
  static inline constinit Mutant* all_ = nullptr;
  const char* name_;
  Mutant* next_;
  bool chosen_ = false;
};

template <std::size_t size>
struct MutantName {
  constexpr MutantName(const char (&name)[size]) {  // NOLINT: a literal is one
    for (std::size_t i = 0; i < size; ++i) text[i] = name[i];
  }
  char text[size];
};

template <MutantName name>
inline Mutant mutant_named{name.text};

template <MutantName name>
bool chosen() {
  return mutant_named<name>.is_chosen();
}

}  // namespace model
