#include "sched/run_end.h"

#include <new>

#include "base/atomic.h"
#include "base/guard.h"
#include "base/lock.h"

namespace magpie::sched {
namespace {

base::Lock list_lock;
ToldOfRunEnd* first_told MAGPIE_GUARDED_BY(list_lock) = nullptr;

base::Atomic<std::uint64_t> last_over{0};  // atomic, published: run() writes, anyone reads

}  // namespace

// acquire: with note_run_end()
bool is_over(std::uint64_t generation) { return generation <= last_over.load(base::acquire); }

void ToldOfRunEnd::enlist() {
  base::Guard hold(list_lock);
  next_ = first_told;
  if (next_ != nullptr) next_->previous_ = this;
  first_told = this;
}

void ToldOfRunEnd::delist() {
  base::Guard hold(list_lock);
  (previous_ != nullptr ? previous_->next_ : first_told) = next_;
  if (next_ != nullptr) next_->previous_ = previous_;
}

void note_run_end(std::uint64_t generation) {
  last_over.store(generation, base::release);  // with is_over()
  // This wakes threads under the lock: none of them may leave the list meanwhile.
  base::Guard hold(list_lock);
  for (ToldOfRunEnd* each = first_told; each != nullptr; each = each->next_)
    each->waiter_.tell_thread();
}

void note_forgotten_run(std::uint64_t generation) {
  last_over.store(generation, base::release);  // with is_over()
}

// Unchecked: in the child of a fork there is one thread.
MAGPIE_UNCHECKED void forget_waiting_threads() {
  new (&list_lock) base::Lock;
  first_told = nullptr;
}

}  // namespace magpie::sched
