// rw_mutex.cc: the slow half of RWMutex. Protocol [rw-mutex]: rw_mutex_core.h.
#include <algorithm>

#include <magpie/runtime.h>
#include <magpie/rw_mutex.h>

#include "base/check.h"
#include "base/clock.h"
#include "sync/in_transit.h"
#include "sync/rw_mutex_core.h"
#include "sync/sleeper.h"
#include "sync/storage.h"
#include "sync/until.h"
#include "sync/woken_mark.h"

namespace magpie {

using sched::Presence;
using sched::WaitList;
using sched::WaitReason;
using sync::as_list;
using sync::as_lock;
using sync::InTransit;
using sync::RWCounts;
using sync::RWStripe;
using sync::RWWord;
using sync::Sleeper;
using sync::WokenMark;

namespace {

constexpr std::int64_t kStarvingNs = 1'000'000;

// The first reader that finds the word changed under its hands opens the stripes. To open and close
// them takes about a microsecond. If they were open for too short a time, the next opening takes
// more of such meetings, twice as many each time.
constexpr std::int64_t kWorthOpeningNs = 2'000;
constexpr std::uint32_t kMostMeetings = 4096;

static_assert(sizeof(RWStripe::Word) == sizeof(std::atomic<std::uint64_t>));
static_assert(sizeof(RWCounts) == 4 * sizeof(std::uint32_t));
static_assert(alignof(RWCounts) == alignof(std::uint32_t));

RWCounts& as_counts(std::uint32_t (&words)[4]) { return reinterpret_cast<RWCounts&>(words); }

constexpr const char* kNotRead = "unlocks an RWMutex for reading that no reader holds";

[[noreturn]] void fail(const char* what) {
  base::fatal("goroutine %lu %s", static_cast<unsigned long>(goroutine_id()), what);
}

// Threads that read at the same time mostly have different numbers. In a function of its own: the
// address of a thread_local must not be remembered over a switch.
[[gnu::noinline]] unsigned number_of_thread() {
  static std::atomic<unsigned> numbered{0};  // atomic, a count: of threads that have asked
  thread_local const unsigned number = numbered.fetch_add(1, base::relaxed);
  return number;
}

struct WriterSleeper : Sleeper {
  using Sleeper::Sleeper;
  bool let_in = false;  // the waker writes it; false: it competes
};

// What a writer has been given, in the terms of InTransit; readers count as one each.
constexpr std::uint64_t kWholeMutex = std::uint64_t{1} << 32;

// Takes all readers off the list. The caller holds the lock.
sync::Woken<> take_readers(WaitList& list, RWWord::Word& word, RWCounts& counts, InTransit given,
                           const Presence& presence) {
  sync::Woken<> readers;
  std::uint32_t taken = 0;
  while (sched::WaitRecord* record = list.first(presence)) {
    list.unlink(*record);
    given.note(*record, 1, presence);
    readers.add(static_cast<Sleeper&>(*record));
    ++taken;
  }
  if (taken != counts.listed) RWWord::forget(word, counts, counts.listed - taken);
  return readers;
}

RWWord::WriterList list_state_of(WaitList& writers, const Presence& presence) {
  return writers.first(presence) == nullptr ? RWWord::WriterList::served
                                            : RWWord::WriterList::unserved;
}

// Takes the first writer off the list: it holds the mutex now. Null: it has been dropped. The
// caller holds the lock.
WriterSleeper* let_first_in(WaitList& list, RWWord::Word& word, RWCounts& counts, InTransit given,
                            const Presence& presence) {
  auto* writer = static_cast<WriterSleeper*>(list.first(presence));
  if (writer == nullptr) return nullptr;
  list.unlink(*writer);
  writer->let_in = true;
  given.note(*writer, kWholeMutex, presence);
  counts.starving = 0;
  RWWord::set_call(word, list_state_of(list, presence));
  return writer;
}

}  // namespace

// A run() may have ended. It drops the goroutines that were let in and have not run yet, and the
// woken writer.
struct RWMutex::Insides {
  // What the caller does when the lock is free again.
  struct Owed {
    sched::Waiter* let_in = nullptr;  // wake it
    bool unlock = false;              // the mutex is the caller's: unlock it
  };

  // The caller holds the lock.
  static void open_stripes(RWMutex& mutex) {
    if (!RWWord::try_open(mutex.word_)) return;
    mutex.opened_ns_ = base::now_ns();
    for (auto& stripe : mutex.stripes_) RWStripe::open(stripe.word);
  }

  // The caller holds the lock. No reader opens them again before it has the lock.
  static void close_stripes(RWMutex& mutex) {
    if (!mutex.is_striped()) return;
    std::uint64_t sum = 0;
    for (auto& stripe : mutex.stripes_) sum += RWStripe::close(stripe.word);
    if (!RWWord::take_over(mutex.word_, sum)) fail(kNotRead);
    bool was_worth_it = base::now_ns() - mutex.opened_ns_ >= kWorthOpeningNs;
    std::uint32_t before = mutex.more_meetings_.load(base::relaxed);
    std::uint32_t more = was_worth_it ? 0 : std::min(2 * before + 1, kMostMeetings);
    mutex.more_meetings_.store(more, base::relaxed);
    mutex.meetings_.store(0, base::relaxed);
  }

  // A reader found the word changed under its hands.
  static void note_meeting(RWMutex& mutex) {
    // relaxed, and not in one step: a meeting that is not counted delays the opening
    std::uint32_t before = mutex.meetings_.load(base::relaxed);
    mutex.meetings_.store(before + 1, base::relaxed);
    if (before < mutex.more_meetings_.load(base::relaxed)) return;
    sched::Entry entry;
    as_lock(mutex.lock_).lock();
    open_stripes(mutex);
    as_lock(mutex.lock_).unlock();
  }

  static RWStripe::Word& own_stripe(RWMutex& mutex) {
    return mutex.stripes_[number_of_thread() % kStripes].word;
  }

  // Inside. False: counted, not admitted.
  [[nodiscard]] static bool add_reader(RWMutex& mutex) {
    return (mutex.is_striped() && mutex.try_enter_stripe()) || RWWord::add_reader(mutex.word_);
  }

  // The caller holds the lock.
  static RWWord::Announced announce(RWMutex& mutex, RWWord::WriterList others,
                                    RWWord::WriterList all) {
    close_stripes(mutex);
    return RWWord::announce(mutex.word_, as_counts(mutex.counts_), others, all);
  }

  // The caller holds the lock.
  static Owed take_back(RWMutex& mutex, const Presence& presence) {
    RWCounts& counts = as_counts(mutex.counts_);
    InTransit given(mutex.given_);
    std::uint64_t lost = given.take_back();
    if (lost == 0) return {};
    if (lost == kWholeMutex) return {.unlock = true};
    if (!RWWord::remove_dropped(mutex.word_, counts, static_cast<std::uint32_t>(lost))) return {};
    auto* writer = let_first_in(as_list(mutex.writers_), mutex.word_, counts, given, presence);
    if (writer == nullptr) return {.unlock = true};
    return {.let_in = &writer->waiter};
  }

  // The caller holds the lock. Somebody will look at the line of writers, or owes it.
  static Owed call_for_writers(RWMutex& mutex, const Presence& presence) {
    using WriterList = RWWord::WriterList;
    if (list_state_of(as_list(mutex.writers_), presence) == WriterList::served) return {};
    if (WokenMark(mutex.woken_).is_set(presence)) return {};
    auto announced = announce(mutex, WriterList::unserved, WriterList::unserved);
    return {.unlock = announced == RWWord::Announced::holds};
  }

  static void pay(RWMutex& mutex, Owed owed) {
    if (owed.let_in != nullptr) owed.let_in->wake();
    if (owed.unlock) mutex.unlock();
  }

  // For a plain thread that waits and is told of the end of a run().
  static void look_again(void* its_mutex) {
    auto& mutex = *static_cast<RWMutex*>(its_mutex);
    Presence presence;
    as_lock(mutex.lock_).lock();
    Owed owed = take_back(mutex, presence);
    if (!owed.unlock && owed.let_in == nullptr) owed = call_for_writers(mutex, presence);
    as_lock(mutex.lock_).unlock();
    pay(mutex, owed);
  }

  // For a caller that finds the mutex taken.
  static void look_first(RWMutex& mutex) {
    if (!InTransit(mutex.given_).looks_lost()) return;
    Presence presence;
    as_lock(mutex.lock_).lock();
    Owed owed = take_back(mutex, presence);
    as_lock(mutex.lock_).unlock();
    pay(mutex, owed);
  }

  static bool unlock_when_asleep(sched::Waiter&, void* its_mutex) {
    as_lock(static_cast<RWMutex*>(its_mutex)->lock_).unlock();
    return true;
  }

  // How to wait: until when, and with which argument. Every step but withdrawing needs only the
  // mutex.
  struct ForEver {
    bool wait(sched::Waiter& waiter, WaitReason reason, RWMutex& mutex, Sleeper&) const {
      waiter.wait(reason, unlock_when_asleep, &mutex, look_again);
      return true;
    }
    static constexpr bool is_over() { return false; }
  };

  // A wait that can end without the mutex.
  struct LimitedWait {
    RWMutex& mutex;
    Sleeper& sleeper;
  };

  // `Until` is one of until.h.
  template <class Until>
  struct Limited {
    Until until;
    bool (*withdraw)(sched::Waiter&, void* limited_wait);

    bool wait(sched::Waiter& waiter, WaitReason reason, RWMutex& mutex, Sleeper& self) const {
      LimitedWait both{mutex, self};
      return until.wait(
          waiter, reason,
          [](sched::Waiter&, void* its) {
            as_lock(static_cast<LimitedWait*>(its)->mutex.lock_).unlock();
            return true;
          },
          withdraw, &both, [](void* its) { look_again(&static_cast<LimitedWait*>(its)->mutex); });
    }
    bool is_over() const { return until.is_over(); }
  };

  // A reader's context is over, or its time is up. False: too late, it has been let in.
  static bool withdraw_reader(sched::Waiter&, void* limited_wait) {
    auto& [mutex, self] = *static_cast<LimitedWait*>(limited_wait);
    WaitList& list = as_list(mutex.readers_);
    Presence presence;
    as_lock(mutex.lock_).lock();
    bool listed = list.holds(self, presence);
    if (listed) {
      list.unlink(self);
      RWWord::forget(mutex.word_, as_counts(mutex.counts_), 1);
    }
    as_lock(mutex.lock_).unlock();
    return listed;
  }

  // A writer's context is over, or its time is up. False: too late, it has been let in, or woken.
  static bool withdraw_writer(sched::Waiter&, void* limited_wait) {
    auto& [mutex, self] = *static_cast<LimitedWait*>(limited_wait);
    WaitList& list = as_list(mutex.writers_);
    RWCounts& counts = as_counts(mutex.counts_);
    sync::Woken<> readers;
    Presence presence;
    as_lock(mutex.lock_).lock();
    sched::WaitRecord* first = list.first(presence);
    bool listed = list.holds(self, presence);
    if (listed) {
      if (first == &self) counts.starving = 0;
      list.unlink(self);
      RWWord::WriterList left = list_state_of(list, presence);
      if (left == RWWord::WriterList::served) RWWord::set_call(mutex.word_, left);
      if (RWWord::is_abandoned(counts, left)) {
        readers = take_readers(as_list(mutex.readers_), mutex.word_, counts,
                               InTransit(mutex.given_), presence);
        RWWord::admit_listed(counts);
      }
    }
    as_lock(mutex.lock_).unlock();
    readers.wake_all();
    return listed;
  }

  // A woken writer's context is over, or its time is up: it sees to the line. True: it has the
  // mutex after all.
  static bool last_attempt(RWMutex& mutex) {
    Presence presence;
    as_lock(mutex.lock_).lock();
    WokenMark(mutex.woken_).clear();
    bool holds = call_for_writers(mutex, presence).unlock;
    as_lock(mutex.lock_).unlock();
    return holds;
  }

  template <class Until>
  static bool lock(RWMutex& mutex, Until until);
  template <class Until>
  static bool lock_shared(RWMutex& mutex, Until until);
};

bool RWMutex::try_lock_slow() noexcept {
  sched::Entry entry;
  Insides::look_first(*this);
  if (is_striped()) {
    as_lock(lock_).lock();
    Insides::close_stripes(*this);
    as_lock(lock_).unlock();
  }
  return try_lock_fast();
}

bool RWMutex::try_lock_shared_slow() noexcept {
  sched::Entry entry;
  Insides::look_first(*this);
  if (try_lock_shared_fast()) return true;
  RWCounts& counts = as_counts(counts_);
  Presence presence;
  as_lock(lock_).lock();
  bool in = RWWord::is_abandoned(counts, list_state_of(as_list(writers_), presence));
  if (in) RWWord::enter_abandoned_uncounted(word_, counts);
  as_lock(lock_).unlock();
  return in;
}

template <class Until>
bool RWMutex::Insides::lock(RWMutex& mutex, Until until) {
  sched::Entry entry;
  WriterSleeper self(&mutex);
  sched::ToldOfRunEnd told(self.waiter);
  look_first(mutex);
  RWCounts& counts = as_counts(mutex.counts_);
  const std::int64_t since_ns = base::now_ns();
  for (bool newcomer = true;; newcomer = false) {
    if (!newcomer && until.is_over()) return last_attempt(mutex);
    const bool starves = !newcomer && base::now_ns() - since_ns >= kStarvingNs;
    WaitList& list = as_list(mutex.writers_);
    {
      Presence presence;
      as_lock(mutex.lock_).lock();
      WokenMark woken(mutex.woken_);
      if (!newcomer) woken.clear();
      const bool will_be_served = woken.is_set(presence);
      const auto all = will_be_served ? RWWord::WriterList::served : RWWord::WriterList::unserved;
      const auto others = will_be_served ? all : list_state_of(list, presence);
      const auto announced = announce(mutex, others, all);
      if (announced == RWWord::Announced::holds) {
        as_lock(mutex.lock_).unlock();
        return true;
      }
      if (newcomer && announced == RWWord::Announced::waits_for_writer) {
        list.push(self, presence);
      } else {
        list.push_front(self, presence);
        counts.starving = starves ? 1 : 0;
      }
    }
    if (!until.wait(self.waiter, WaitReason::rw_mutex_write, mutex, self)) return false;
    if (self.let_in) {
      InTransit(mutex.given_).arrive(self, kWholeMutex);
      return true;
    }
  }
}

void RWMutex::lock_slow() noexcept { (void)Insides::lock(*this, Insides::ForEver{}); }

bool RWMutex::lock_until(detail::DeadlineNs deadline) noexcept {
  if (deadline <= base::now_ns()) return false;
  using Limited = Insides::Limited<sync::UntilTime>;
  return Insides::lock(*this, Limited{{deadline}, Insides::withdraw_writer});
}

bool RWMutex::lock_with(sched::CancelSource* source) noexcept {
  if (try_lock()) return true;
  if (source == nullptr) return Insides::lock(*this, Insides::ForEver{});
  using Limited = Insides::Limited<sync::UnlessOver>;
  return Insides::lock(*this, Limited{{*source}, Insides::withdraw_writer});
}

// The caller found a writer there. The reader is inside from before it is counted until it waits:
// if it were dropped between, nobody would know that it is counted and never comes.
template <class Until>
bool RWMutex::Insides::lock_shared(RWMutex& mutex, Until until) {
  sched::Entry entry;
  Sleeper self(&mutex);
  sched::ToldOfRunEnd told(self.waiter);
  look_first(mutex);
  if (add_reader(mutex)) return true;
  RWCounts& counts = as_counts(mutex.counts_);
  {
    Presence presence;
    as_lock(mutex.lock_).lock();
    if (RWWord::use_admission(counts)) {
      as_lock(mutex.lock_).unlock();
      return true;
    }
    if (RWWord::is_abandoned(counts, list_state_of(as_list(mutex.writers_), presence))) {
      RWWord::enter_abandoned(counts);
      as_lock(mutex.lock_).unlock();
      return true;
    }
    as_list(mutex.readers_).push(self, presence);
  }
  if (!until.wait(self.waiter, WaitReason::rw_mutex_read, mutex, self)) return false;
  InTransit(mutex.given_).arrive(self, 1);
  return true;
}

void RWMutex::lock_shared_contended() noexcept {
  if (!is_striped() && word_.load(base::relaxed) < kWriter) Insides::note_meeting(*this);
  if (!try_lock_shared_fast()) lock_shared_slow();
}

void RWMutex::lock_shared_slow() noexcept { (void)Insides::lock_shared(*this, Insides::ForEver{}); }

bool RWMutex::lock_shared_until(detail::DeadlineNs deadline) noexcept {
  if (deadline <= base::now_ns()) return false;
  if (try_lock_shared_fast()) return true;
  using Limited = Insides::Limited<sync::UntilTime>;
  return Insides::lock_shared(*this, Limited{{deadline}, Insides::withdraw_reader});
}

bool RWMutex::lock_shared_with(sched::CancelSource* source) noexcept {
  if (try_lock_shared_fast()) return true;
  if (source == nullptr) return Insides::lock_shared(*this, Insides::ForEver{});
  using Limited = Insides::Limited<sync::UnlessOver>;
  return Insides::lock_shared(*this, Limited{{*source}, Insides::withdraw_reader});
}

bool RWMutex::try_enter_stripe() noexcept {
  return RWStripe::try_enter(Insides::own_stripe(*this));
}

bool RWMutex::try_leave_stripe() noexcept {
  if (!RWStripe::try_leave(Insides::own_stripe(*this))) return false;
  if (detail::short_way.is_closed()) [[unlikely]] {
    sched::LateEntry gives_way;
  }
  return true;
}

void RWMutex::unlock_shared_slow(std::uint64_t before) noexcept {
  sched::LateEntry entry;
  RWCounts& counts = as_counts(counts_);
  if (RWWord::readers_of(before) == 0) fail(kNotRead);
  if (before < kWriter) return;  // it is unlocked; the short way was closed
  Presence presence;
  as_lock(lock_).lock();
  if (counts.departing == 0) fail(kNotRead);
  if (!RWWord::depart(counts)) {
    as_lock(lock_).unlock();
    return;
  }
  WriterSleeper* writer =
      let_first_in(as_list(writers_), word_, counts, InTransit(given_), presence);
  as_lock(lock_).unlock();
  if (writer != nullptr) {
    sync::wake_late(entry, *writer);
  } else {
    unlock();  // the writer that waited for us has been dropped
  }
}

void RWMutex::unlock_slow() noexcept {
  sched::LateEntry entry;
  RWCounts& counts = as_counts(counts_);
  WaitList& list = as_list(writers_);
  while (!RWWord::try_unlock(word_)) {
    Presence presence;
    as_lock(lock_).lock();
    bool held = (word_.load(base::relaxed) & RWWord::kWriter) != 0 && counts.departing == 0;
    if (!held) fail("unlocks an RWMutex that no writer holds");
    sync::Woken<> readers =
        take_readers(as_list(readers_), word_, counts, InTransit(given_), presence);
    auto* writer = static_cast<WriterSleeper*>(list.first(presence));
    auto writers = RWWord::Writers::none;
    if (writer != nullptr && !WokenMark(woken_).is_set(presence)) {
      writers = counts.starving != 0 ? RWWord::Writers::starving : RWWord::Writers::waiting;
    }
    switch (RWWord::release(word_, counts, writers)) {
      case RWWord::Releasing::not_yet:
        as_lock(lock_).unlock();
        continue;
      case RWWord::Releasing::to_readers:
        writer = nullptr;
        break;
      case RWWord::Releasing::to_readers_and_compete:
        list.unlink(*writer);
        WokenMark(woken_).set(*writer, presence);
        break;
      case RWWord::Releasing::to_writer:
        let_first_in(list, word_, counts, InTransit(given_), presence);
        break;
    }
    as_lock(lock_).unlock();
    if (writer != nullptr) readers.add(*writer);
    readers.wake_all_late(entry);
    return;
  }
}

}  // namespace magpie
