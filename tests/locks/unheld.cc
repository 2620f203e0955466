// unheld.cc: what Clang has to refuse. Compiled with -verify, never run: each line with
// "expected-error" must fail as it says, and no other line may.
#include "base/guard.h"
#include "base/lock.h"
#include "sched/run/runtime.h"
#include "timer/timer_set.h"

namespace magpie::sched {

struct Counted {
  base::Lock lock;
  int count MAGPIE_GUARDED_BY(lock) = 0;
  void add_locked() MAGPIE_REQUIRES(lock) { ++count; }
};

void use_with_the_lock(Counted& counted) {
  base::Guard hold(counted.lock);
  ++counted.count;
  counted.add_locked();
}

void use_without_the_lock(Counted& counted) {
  ++counted.count;       // expected-error {{writing variable 'count' requires holding}}
  counted.add_locked();  // expected-error {{calling function 'add_locked' requires holding}}
}

void use_with_the_lock_of_another(Counted& counted, Counted& other) {
  base::Guard hold(other.lock);
  ++counted.count;  // expected-error-re {{writing variable 'count' requires holding {{.*}}}}
  // expected-note@-1 {{found near match}}
}

void use_after_the_guard(Counted& counted) {
  { base::Guard hold(counted.lock); }
  ++counted.count;  // expected-error {{writing variable 'count' requires holding}}
}

void take_it_twice(Counted& counted) {
  base::Guard hold(counted.lock);   // expected-note {{acquired here}}
  base::Guard again(counted.lock);  // expected-error {{is already held}}
}

void keep_it(Counted& counted) {
  counted.lock.lock();  // expected-note {{acquired here}}
}  // expected-error {{is still held at the end of function}}

void use_lists_with_their_lock(P* p) {
  base::Guard hold(runtime->idle.lock());
  runtime->idle.give_p_locked(p);
  runtime->world.take_back_locked(p);
}

void use_lists_without_their_lock(P* p, M* m) {
  runtime->idle.give_p_locked(p);      // expected-error {{'give_p_locked' requires holding}}
  runtime->world.take_back_locked(p);  // expected-error {{'take_back_locked' requires holding}}
  m->rest.in_place.begin_locked();     // expected-error {{'begin_locked' requires holding}}
}

void use_timers_without_their_lock(timer::TimerSet& timers, timer::Timer& timer) {
  timers.insert_locked(timer, 0);  // expected-error {{'insert_locked' requires holding}}
}

}  // namespace magpie::sched
