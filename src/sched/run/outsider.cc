#include "sched/run/outsider_gate.h"

#include <sched.h>

#include <new>

#include "sched/run/runtime.h"
#include "sched/threads/fork.h"

namespace magpie::sched {

Runtime* runtime = nullptr;

namespace {
OutsiderGate gate;
thread_local bool is_unnoted = false;  // of plain threads only, which never become Ms
}  // namespace

void visit_unnoted() { is_unnoted = true; }

bool begin_visit() { return is_unnoted ? gate.enter_unnoted() : gate.enter(); }
void end_visit() { gate.exit(); }

Visit::Visit() : alive_(begin_visit()) {}
Visit::~Visit() {
  if (alive_) end_visit();
}

bool outsiders_came() { return gate.anybody_came(); }

void open_to_outsiders() { gate.open(); }

void close_to_outsiders() {
  gate.close();
  while (!gate.is_empty()) sched_yield();  // visits last microseconds
}

void forget_outsiders() { new (&gate) OutsiderGate; }

}  // namespace magpie::sched
