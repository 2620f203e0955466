// rw_mutex.cc: the slow half of RWMutex. Protocol [rw-mutex]: rw_mutex_core.h.
#include <magpie/runtime.h>
#include <magpie/rw_mutex.h>

#include "base/check.h"
#include "sync/rw_mutex_core.h"
#include "sync/sleeper.h"
#include "sync/storage.h"

namespace magpie {

using sched::Presence;
using sched::WaitList;
using sched::WaitReason;
using sync::as_list;
using sync::as_lock;
using sync::RWCounts;
using sync::RWWord;
using sync::Sleeper;

namespace {

static_assert(sizeof(RWCounts) == 3 * sizeof(std::uint32_t));
static_assert(alignof(RWCounts) == alignof(std::uint32_t));

RWCounts& as_counts(std::uint32_t (&words)[3]) { return reinterpret_cast<RWCounts&>(words); }

[[noreturn]] void fail(const char* what) {
  base::fatal("goroutine %lu %s", static_cast<unsigned long>(goroutine_id()), what);
}

// Takes all readers off the list. The caller holds the lock.
sync::Woken<> take_readers(WaitList& list, RWWord::Word& word, RWCounts& counts,
                           const Presence& presence) {
  sync::Woken<> readers;
  std::uint32_t taken = 0;
  while (sched::WaitRecord* record = list.first(presence)) {
    list.unlink(*record);
    readers.add(static_cast<Sleeper&>(*record));
    ++taken;
  }
  if (taken != counts.listed) RWWord::forget(word, counts, counts.listed - taken);
  return readers;
}

// Takes the first writer off the list, if there is one. The caller holds the lock.
Sleeper* take_writer(WaitList& list, RWWord::Word& word, const Presence& presence) {
  auto* writer = static_cast<Sleeper*>(list.first(presence));
  if (writer == nullptr) return nullptr;
  list.unlink(*writer);
  if (list.first(presence) == nullptr) RWWord::clear_call(word);
  return writer;
}

}  // namespace

void RWMutex::lock_slowly() noexcept {
  as_lock(lock_).lock();
  if (RWWord::announce(word_, as_counts(counts_)) == RWWord::Announced::holds) {
    as_lock(lock_).unlock();
    return;
  }
  Sleeper self;
  as_list(writers_).push(self, Presence());
  self.waiter.wait(WaitReason::rw_mutex_write, sync::unlock_when_asleep, &as_lock(lock_));
}

void RWMutex::lock_shared_slowly() noexcept {
  as_lock(lock_).lock();
  if (RWWord::use_admission(as_counts(counts_))) {
    as_lock(lock_).unlock();
    return;
  }
  Sleeper self;
  as_list(readers_).push(self, Presence());
  self.waiter.wait(WaitReason::rw_mutex_read, sync::unlock_when_asleep, &as_lock(lock_));
}

void RWMutex::unlock_shared_slowly(std::uint64_t before) noexcept {
  constexpr const char* kNotHeld = "unlocks an RWMutex for reading that no reader holds";
  if (RWWord::readers_of(before) == 0) fail(kNotHeld);
  Presence presence;
  as_lock(lock_).lock();
  if (as_counts(counts_).departing == 0) fail(kNotHeld);
  if (!RWWord::depart(as_counts(counts_))) {
    as_lock(lock_).unlock();
    return;
  }
  Sleeper* writer = take_writer(as_list(writers_), word_, presence);
  as_lock(lock_).unlock();
  if (writer != nullptr) {
    writer->waiter.wake();
  } else {
    unlock();  // the writer that waited for us has been dropped
  }
}

void RWMutex::unlock_slowly() noexcept {
  RWCounts& counts = as_counts(counts_);
  while (!RWWord::try_unlock(word_)) {
    Presence presence;
    as_lock(lock_).lock();
    bool held = (word_.load(base::relaxed) & RWWord::kWriter) != 0 && counts.departing == 0;
    if (!held) fail("unlocks an RWMutex that no writer holds");
    sync::Woken<> readers = take_readers(as_list(readers_), word_, counts, presence);
    auto writers = as_list(writers_).first(presence) == nullptr ? RWWord::Writers::none
                                                                : RWWord::Writers::waiting;
    switch (RWWord::leave(word_, counts, writers)) {
      case RWWord::Leaving::not_yet:
        as_lock(lock_).unlock();
        continue;
      case RWWord::Leaving::to_readers:
        as_lock(lock_).unlock();
        readers.wake_all();
        return;
      case RWWord::Leaving::to_one_writer:
        Sleeper* next = take_writer(as_list(writers_), word_, presence);
        as_lock(lock_).unlock();
        next->waiter.wake();
        return;
    }
  }
}

}  // namespace magpie
