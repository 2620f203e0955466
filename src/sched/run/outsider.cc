#include "sched/run/outsider_gate.h"

#include <sched.h>

#include <cstdint>
#include <new>

#include "base/thread_end.h"
#include "sched/rest/bystanders.h"
#include "sched/run/runtime.h"
#include "sched/threads/fork.h"

namespace magpie::sched {

Runtime* runtime = nullptr;

namespace {
OutsiderGate gate;
base::Atomic<std::uint32_t> visits_at_opening{0};  // atomic, a count: run() writes, Ms read

// What a plain thread that visits is.
enum class Visitor : std::uint8_t {
  unknown,
  known,   // its end will be noted
  unnoted  // it never becomes an M
};
constinit thread_local Visitor visitor = Visitor::unknown;

// The destructor of another thread_local may visit after that: then the end is noted once more.
void note_end(void*) {
  visitor = Visitor::unknown;
  if (!gate.enter_unnoted()) return;
  note_ending_thread();
  gate.exit();
}

[[gnu::noinline]] bool begin_unusual_visit() {
  if (visitor == Visitor::unnoted) return gate.enter_unnoted();
  if (visitor == Visitor::unknown) {
    visitor = Visitor::known;
    base::at_thread_end(note_end, nullptr);
  }
  return is_bystander() ? gate.enter_unnoted() : gate.enter();
}
}  // namespace

void visit_unnoted() { visitor = Visitor::unnoted; }

bool begin_visit() {
  bool is_usual = visitor == Visitor::known && !is_bystander();
  return is_usual ? gate.enter() : begin_unusual_visit();
}
void end_visit() { gate.exit(); }

Visit::Visit() : alive_(begin_visit()) {}
Visit::~Visit() {
  if (alive_) end_visit();
}

std::uint32_t count_visits() { return gate.visits(); }
bool outsiders_came() { return gate.visits() != visits_at_opening.load(base::relaxed); }

void open_to_outsiders() {
  visits_at_opening.store(gate.visits(), base::relaxed);  // relaxed: Ms are started after that
  gate.open();
}

void close_to_outsiders() {
  gate.close();
  while (!gate.is_empty()) sched_yield();  // visits last microseconds
}

void forget_outsiders() { new (&gate) OutsiderGate; }

}  // namespace magpie::sched
