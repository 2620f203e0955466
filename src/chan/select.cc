// select.cc: the first of several channel operations that can go on. [select]: select_word.h.
//
//   1. Looks at every channel without its lock. Chooses one of those that seem ready at random,
//      locks it alone, and does it.
//   2. If none is ready: locks all channels, in the order of their addresses and each once, and
//      looks again. Only now it is certain that at one moment none was ready.
//   3. Puts a record per case on the lists, and sleeps. The locks are released once the registers
//      are saved.
//   4. Once woken, takes the records that lost off their lists, one channel at a time.
//
// Each choice is uniform among the ready cases: counts them, draws a number, does that one. A
// partner that is itself a select may be gone by then; then it counts and draws again.
#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <new>
#include <span>

#include <magpie/detail/select_core.h>
#include <magpie/select.h>
#include <magpie/time.h>

#include "base/clock.h"
#include "base/random.h"
#include "chan/channel.h"
#include "sched/wait_object.h"

namespace magpie::chan {
namespace {

using detail::Choice;
using detail::Chosen;
using detail::Direction;
using detail::Select;
using detail::SelectCase;
using sched::Waiter;
using sched::WaitReason;
using Cases = std::span<SelectCase>;

static_assert(sizeof(ChanWaiter) <= SelectCase::kRecordBytes && alignof(ChanWaiter) <= 8);
static_assert(std::is_trivially_destructible_v<ChanWaiter>);

constexpr int kOptimisticTries = 3;
constexpr std::size_t kGuessFrom = 5;  // cases

Channel& channel_of(const SelectCase& one) { return *chan::channel_of(one.channel); }

// A plain thread's random number. In a function of its own: the address of a thread_local must not
// be remembered over a switch.
[[gnu::noinline]] std::uint32_t random_of_thread() {
  thread_local base::Random random(reinterpret_cast<std::uintptr_t>(&random));
  return random.next();
}

// Below n, uniformly but for one in 2^32 / n.
std::size_t draw(const Presence& presence, std::size_t n) {
  if (n == 1) return 0;
  sched::M* m = presence.m();
  std::uint64_t random = m != nullptr ? sched::random_of(m) : random_of_thread();
  return static_cast<std::size_t>((random * n) >> 32);
}

// Which cases are ready, by ready(case), and one of them at random. The first 64 are remembered in
// a word, the others are asked again.
template <class Ready>
class Chooser {
 public:
  Chooser(Cases cases, Ready ready) : cases_(cases), ready_(ready) {
    for (std::size_t i = 0; i < std::min(cases.size(), kBits); ++i) {
      bool ready_now = is_ready(i);
      first_ |= std::uint64_t{ready_now} << i;
      count_ += ready_now;
    }
    for (std::size_t i = kBits; i < cases.size(); ++i) count_ += is_ready(i);
  }

  std::size_t count() const { return count_; }

  // Null: some were ready, but the chosen one is not any more.
  SelectCase* choose(const Presence& presence) const {
    std::size_t n = draw(presence, count_);
    std::uint64_t left = first_;
    for (; left != 0; left &= left - 1) {
      if (n-- == 0) return &cases_[static_cast<std::size_t>(std::countr_zero(left))];
    }
    for (std::size_t i = kBits; i < cases_.size(); ++i) {
      if (is_ready(i) && n-- == 0) return &cases_[i];
    }
    return nullptr;
  }

 private:
  static constexpr std::size_t kBits = 64;
  bool is_ready(std::size_t i) const { return cases_[i].channel != nullptr && ready_(cases_[i]); }

  Cases cases_;
  Ready ready_;
  std::uint64_t first_ = 0;
  std::size_t count_ = 0;
};

Step do_locked(SelectCase& one, const Presence& presence) {
  Channel& channel = channel_of(one);
  return one.direction == Direction::receive ? channel.receive_locked(one.slot, presence)
                                             : channel.send_locked(one.slot, presence);
}

// ---- without locks

[[gnu::always_inline]] inline bool looks_ready(const SelectCase& one) {
  const Channel& channel = channel_of(one);
  return one.direction == Direction::receive ? !channel.state.refuses_receive(channel.senders)
                                             : !channel.state.refuses_send(channel.receivers);
}

// Null: the partner was a select, and is gone.
[[gnu::always_inline]] inline SelectCase* do_alone(SelectCase& one, const Presence& presence) {
  Channel& channel = channel_of(one);
  channel.lock.lock();
  Step step = do_locked(one, presence);
  channel.lock.unlock();
  one.result = step.finish();
  return one.result != ChanResult::refused ? &one : nullptr;
}

struct Glance {
  SelectCase* done = nullptr;
  bool none_was_ready = false;  // each by itself: not all at the same moment
};

// Tries one case, drawn among all. Null: it is not ready. Each ready case is drawn as often as any
// other, so the choice stays uniform. While other Ps use the channels, a look at each of them costs
// a cache line. So this pays where most cases are ready. Where few are, it costs a branch that no
// predictor foresees. The P remembers which of the two it met last.
SelectCase* try_a_guess(Cases cases, const Presence& presence) {
  if (cases.size() < kGuessFrom) return nullptr;
  sched::M* m = presence.m();
  if (m == nullptr || !sched::guesses_in_select(m)) return nullptr;
  SelectCase& one = cases[draw(presence, cases.size())];
  bool is_ready = one.channel != nullptr && looks_ready(one);
  return is_ready ? do_alone(one, presence) : nullptr;
}

void note_ready(Cases cases, std::size_t ready, const Presence& presence) {
  if (cases.size() < kGuessFrom) return;
  if (sched::M* m = presence.m()) sched::set_guesses_in_select(m, 2 * ready > cases.size());
}

Glance try_one_by_one(Cases cases, const Presence& presence) {
  if (SelectCase* one = try_a_guess(cases, presence)) return {one};
  for (int tries = 0; tries < kOptimisticTries; ++tries) {
    Chooser chooser(cases, [](const SelectCase& one) { return looks_ready(one); });
    note_ready(cases, chooser.count(), presence);
    if (chooser.count() == 0) return {nullptr, true};
    SelectCase* one = chooser.choose(presence);
    if (one != nullptr && do_alone(*one, presence) != nullptr) return {one};
  }
  return {};
}

// ---- with all locks

// The channels of a select in the order in which they are locked; each once.
class Locks {
 public:
  Locks(Cases cases, SelectCase** room) : order_(room) {
    for (SelectCase& one : cases) {
      if (one.channel != nullptr) order_[count_++] = &one;
    }
    std::sort(order_, order_ + count_, [](const SelectCase* a, const SelectCase* b) {
      return std::less<>()(a->channel, b->channel);
    });
  }

  bool empty() const { return count_ == 0; }
  std::span<SelectCase*> in_order() const { return {order_, count_}; }

  void lock_all() const {
    for (std::size_t i = 0; i < count_; ++i) {
      if (is_first(i)) channel_of(*order_[i]).lock.lock();
    }
  }

  // A partner may wake the select while this runs. Then the select takes the same locks, one by one
  // behind us, so it cannot finish before we release the last one. After that nothing of the select
  // is touched.
  void unlock_all() const {
    std::size_t last = last_first();
    for (std::size_t i = 0; i < last; ++i) {
      if (is_first(i)) channel_of(*order_[i]).lock.unlock();
    }
    Channel& final = channel_of(*order_[last]);
    final.lock.unlock();
  }

  // Returns when unlock_all() has released the last lock, with that lock.
  base::UncheckedQuickLock& last_lock() const { return channel_of(*order_[last_first()]).lock; }

 private:
  bool is_first(std::size_t i) const {
    return i == 0 || order_[i]->channel != order_[i - 1]->channel;
  }
  std::size_t last_first() const {
    std::size_t i = count_ - 1;
    while (!is_first(i)) --i;
    return i;
  }

  SelectCase** order_;
  std::size_t count_ = 0;
};

// Does a case that is ready, if any is. All locks are held.
SelectCase* try_all_locked(Cases cases, const Presence& presence, ChanWaiter*& partner) {
  auto ready = [&](SelectCase& one) {
    return one.direction == Direction::receive ? channel_of(one).can_receive_locked(presence)
                                               : channel_of(one).can_send_locked(presence);
  };
  for (;;) {
    Chooser chooser(cases, ready);
    if (chooser.count() == 0) return nullptr;
    SelectCase* one = chooser.choose(presence);
    if (one == nullptr) continue;
    Step step = do_locked(*one, presence);
    if (step.result == ChanResult::refused) continue;  // the partner was a select, and is gone
    one->result = step.result;
    partner = step.partner;
    return one;
  }
}

// ---- waiting

ChanWaiter& record_of(SelectCase& one) {
  return *std::launder(reinterpret_cast<ChanWaiter*>(one.record));
}
sched::WaitList& list_of(SelectCase& one) {
  return one.direction == Direction::receive ? channel_of(one).receivers : channel_of(one).senders;
}

// On the stack of the select.
struct Wait {
  Locks& locks;
  SelectWord word;
};

bool release(Waiter&, void* mine) {
  static_cast<Wait*>(mine)->locks.unlock_all();
  return true;
}

// The deadline may pass before release() has run: then it comes first.
bool withdraw_select(Waiter&, void* mine) {
  auto& wait = *static_cast<Wait*>(mine);
  base::UncheckedQuickLock& last = wait.locks.last_lock();
  last.lock();
  bool won = wait.word.try_win(SelectWord::kTimeIsUp);
  last.unlock();
  return won;
}

void show_records(Cases cases, const Locks& locks, Waiter& who, SelectWord& word,
                  const Presence& presence) {
  for (SelectCase* one : locks.in_order()) {
    auto* record = new (one->record) ChanWaiter;
    record->who = &who;
    record->slot = one->slot;
    record->select = &word;
    record->index = static_cast<std::uint32_t>(one - cases.data());
    list_of(*one).push(*record, presence);
  }
}

void take_records_back(const Locks& locks) {
  Presence presence;  // a thread's neighbours on a list may have been dropped while it waited
  for (SelectCase* one : locks.in_order()) {
    Channel& channel = channel_of(*one);
    channel.lock.lock();
    list_of(*one).unlink(record_of(*one), presence);
    channel.lock.unlock();
  }
}

// The locks are held and released.
Choice wait_and_unlock(Cases cases, Locks& locks, std::int64_t deadline_ns, Presence& presence) {
  sched::SelectChannels channels{locks.in_order().size(), locks.in_order().data()};
  Waiter who(&channels);
  Wait wait{locks, {}};
  show_records(cases, locks, who, wait.word, presence);
  presence.end();
  bool woken = who.wait_until(deadline_ns, WaitReason::select, release, withdraw_select, &wait);
  take_records_back(locks);
  if (!woken) return {Chosen::time_is_up};
  SelectCase& winner = cases[wait.word.winner()];
  winner.result = record_of(winner).result;
  return {Chosen::a_case, wait.word.winner()};
}

std::int64_t deadline_of(const Select& select) {
  if (select.timeout_ns == detail::kNoDeadline) return sched::kNever;
  std::int64_t now = base::now_ns();
  return select.timeout_ns > sched::kNever - now ? sched::kNever : now + select.timeout_ns;
}

// ---- the done() channels of contexts: see limited.cc

enum class IfWatched { returns, waits };
// Of a select that would have to wait at a channel with a watch. No case has this index.
constexpr Choice kHasToWatch{Chosen::time_is_up, std::numeric_limits<std::size_t>::max()};

bool has_watch(const SelectCase& one) {
  return one.channel != nullptr && one.direction == Direction::receive &&
         channel_of(one).watch != nullptr;
}

bool is_watched(Cases cases) { return std::any_of(cases.begin(), cases.end(), has_watch); }

struct WatchedCase {
  SelectCase* one = nullptr;
  std::int64_t deadline_ns = sched::kNever;
};
WatchedCase first_watched(Cases cases) {
  WatchedCase first;
  for (SelectCase& one : cases) {
    if (!has_watch(one)) continue;
    std::int64_t deadline_ns = channel_of(one).watch->deadline();
    if (deadline_ns < first.deadline_ns) first = {&one, deadline_ns};
  }
  return first;
}

// No case names a channel.
Choice wait_for_time(std::int64_t deadline_ns) {
  if (deadline_ns == sched::kNever) {
    Waiter who(nullptr);
    for (;;) {
      who.wait(
          WaitReason::select_no_cases, [](Waiter&, void*) { return true; }, nullptr);
    }
  }
  detail::sleep_until(deadline_ns);
  return {Chosen::time_is_up};
}

}  // namespace
}  // namespace magpie::chan

namespace magpie::detail {

using namespace chan;

static Choice select_once(const Select& select, IfWatched if_watched) {
  Cases cases(select.cases, select.count);
  auto index_of = [&](SelectCase* one) { return static_cast<std::size_t>(one - select.cases); };
  Presence presence;
  Glance glance = try_one_by_one(cases, presence);
  if (glance.done != nullptr) return {Chosen::a_case, index_of(glance.done)};

  bool returns_at_once = select.if_none_is_ready == Select::IfNoneIsReady::return_at_once;
  Locks locks(cases, select.in_lock_order);
  if (locks.empty()) {
    if (returns_at_once) return {Chosen::none_is_ready};
    presence.end();
    return wait_for_time(deadline_of(select));
  }

  bool one_channel = locks.in_order().size() == 1;
  if (returns_at_once && one_channel && glance.none_was_ready) return {Chosen::none_is_ready};
  if (if_watched == IfWatched::returns && is_watched(cases)) [[unlikely]]
    return kHasToWatch;

  locks.lock_all();
  ChanWaiter* partner = nullptr;
  if (SelectCase* one = try_all_locked(cases, presence, partner)) {
    locks.unlock_all();
    if (partner != nullptr) partner->who->wake();
    return {Chosen::a_case, index_of(one)};
  }
  if (returns_at_once || select.timeout_ns == 0) {
    locks.unlock_all();
    return {returns_at_once ? Chosen::none_is_ready : Chosen::time_is_up};
  }
  return wait_and_unlock(cases, locks, deadline_of(select), presence);
}

// As receive_watched().
[[gnu::noinline]] static Choice select_watched(const Select& select) {
  const std::int64_t deadline_ns = deadline_of(select);
  for (;;) {
    std::int64_t now_ns = base::now_ns();
    WatchedCase first = first_watched(Cases(select.cases, select.count));
    bool watches = first.deadline_ns < deadline_ns;
    std::int64_t until_ns = watches ? first.deadline_ns : deadline_ns;
    Select limited = select;
    limited.timeout_ns =
        until_ns == sched::kNever ? kNoDeadline : std::max<std::int64_t>(until_ns - now_ns, 0);
    Choice choice = select_once(limited, IfWatched::waits);
    if (choice.chosen != Chosen::time_is_up || !watches) return choice;
    channel_of(*first.one).watch->notice();
  }
}

Choice select(const Select& select) {
  Choice choice = select_once(select, IfWatched::returns);
  return choice.index == kHasToWatch.index ? select_watched(select) : choice;
}

}  // namespace magpie::detail
