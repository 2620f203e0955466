#include "sched/outsider_gate.h"

#include <sched.h>

#include <new>

#include "sched/fork.h"
#include "sched/runtime.h"

namespace magpie::sched {

Runtime* runtime = nullptr;

namespace {
OutsiderGate gate;
}

bool enter_runtime() { return gate.enter(); }
void leave_runtime() { gate.leave(); }

Outsider::Outsider() : alive_(enter_runtime()) {}
Outsider::~Outsider() {
  if (alive_) leave_runtime();
}

bool outsiders_came() { return gate.anybody_came(); }

void open_to_outsiders() { gate.open(); }

void close_to_outsiders() {
  gate.close();
  while (!gate.is_empty()) sched_yield();  // they hold it for microseconds
}

void forget_outsiders() { new (&gate) OutsiderGate; }

}  // namespace magpie::sched
