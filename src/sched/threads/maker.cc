#include "sched/threads/maker.h"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/cpu_slices.h"
#include "base/guard.h"
#include "base/os.h"
#include "sched/run/procs.h"
#include "sched/run/runtime.h"
#include "sched/taking/hand_off.h"

namespace magpie::sched {
namespace {

constexpr std::int64_t kSliceNs = 100'000;  // somebody waits for it

Searching wanted_by(const P* p) { return p->wanted_by_searcher ? Searching::yes : Searching::no; }

}  // namespace

void Maker::start() {
  is_there_ = base::os().create_thread(
                  &thread_, nullptr,
                  [](void* self) -> void* {
                    static_cast<Maker*>(self)->serve_requests();
                    return nullptr;
                  },
                  this) == 0;
}

void Maker::stop() {
  {
    base::Guard hold(lock_);
    stop_ = true;
  }
  asked_.set();
  if (is_there_) pthread_join(thread_, nullptr);
  while (is_making()) sched_yield();  // without a maker: some thread that is about to leave
}

bool Maker::is_making() {
  base::Guard hold(lock_);
  return making_ != 0;
}

bool Maker::ask_for_thread(P* p, Searching searching) {
  {
    base::Guard hold(lock_);
    if (stop_) return false;
    p->wanted_by_searcher = searching == Searching::yes;
    p->wanted_since_ns = base::now_ns();
    p->next_idle = std::exchange(wanted_, p);
    wanted_count_ = wanted_count_ + 1;
  }
  if (is_there_) {
    asked_.set();
  } else {
    make_for_wanted();
  }
  return true;
}

void Maker::ask_for_spares(std::size_t waiting, std::size_t most) {
  if (!is_there_) {
    (void)make();
    return;
  }
  {
    base::Guard hold(lock_);
    spares_wanted_ = static_cast<int>(std::clamp<std::size_t>(waiting, 1, most));
  }
  asked_.set();
}

void Maker::ask_for_refresh() {
  {
    base::Guard hold(lock_);
    refresh_wanted_ = true;
  }
  asked_.set();
}

P* Maker::take_wanted(M* m) {
  base::Guard hold(lock_);
  --unborn_;
  P* p = unlink_wanted_locked(&wanted_);
  m->searching = p != nullptr && p->wanted_by_searcher;
  return p;
}

P* Maker::take_back_wanted(std::int64_t since_ns) {
  base::Guard hold(lock_);
  P** link = &wanted_;
  while (*link != nullptr && (*link)->wanted_since_ns > since_ns) link = &(*link)->next_idle;
  return unlink_wanted_locked(link);
}

void Maker::give_back_wanted() {
  while (P* p = pop_wanted()) do_without_thread(p, wanted_by(p));
}

P* Maker::pop_wanted() {
  base::Guard hold(lock_);
  return unlink_wanted_locked(&wanted_);
}

P* Maker::unlink_wanted_locked(P** link) {
  P* p = *link;
  if (p == nullptr) return nullptr;
  *link = p->next_idle;
  wanted_count_ = wanted_count_ - 1;
  return p;
}

void Maker::note_unborn(int change) {
  base::Guard hold(lock_);
  unborn_ += change;
}

void Maker::serve_requests() {
  pthread_setname_np(pthread_self(), "magpie-maker");
  base::ask_for_slices(kSliceNs);
  for (;;) {
    asked_.wait();
    int spares;
    bool refresh;
    {
      base::Guard hold(lock_);
      if (stop_) return;  // the runtime ends: what still waits is not needed
      spares = std::exchange(spares_wanted_, 0);
      refresh = std::exchange(refresh_wanted_, false);
    }
    make_for_wanted();
    if (spares > 0) make_spares(spares);
    if (refresh) refresh_procs();
    if (dump_wanted_.exchange(false, base::relaxed)) runtime->watcher.dump_soon();
  }
}

void Maker::make_for_wanted() {
  while (lacks_threads()) {
    if (make()) continue;
    if (P* p = pop_wanted()) do_without_thread(p, wanted_by(p));
  }
}

bool Maker::lacks_threads() {
  base::Guard hold(lock_);
  return wanted_count_ > unborn_;
}

// Requests that came meanwhile are satisfied by these.
void Maker::make_spares(int count) {
  for (int made = 0; made < count && lacks_spares(count) && make(); ++made) {
  }
  base::Guard hold(lock_);
  spares_wanted_ = 0;
}

// Threads that are about to begin, or have gone to sleep since, count.
bool Maker::lacks_spares(int count) {
  base::Guard hold(lock_);
  return runtime->idle.idle_threads() + unborn_ - wanted_count_ < count;
}

// Outside the runtime, or on a thread that no P waits for.
bool Maker::make() {
  {
    base::Guard hold(lock_);
    if (stop_) return false;
    ++making_;
  }
  bool made = runtime->threads.make();
  base::Guard hold(lock_);
  --making_;
  ++made_;
  return made;
}

std::optional<std::uint64_t> Maker::made_unless_making() {
  base::Guard hold(lock_);
  if (making_ != 0) return std::nullopt;
  return made_;
}

}  // namespace magpie::sched
