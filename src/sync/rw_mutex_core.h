// rw_mutex_core.h: readers and a writer agree in one word, and count each other.
//
// Protocol  [rw-mutex]
//   The word counts readers and has two bits. WRITER: a writer holds the mutex, or waits until the
//   readers have gone. CALL: the writer that takes WRITER away has to look at the list of writers;
//   it may be set for no reason (<magpie/detail/short_way.h>).
//   The rest, RWCounts and two lists, is guarded by a lock.
//
//   reader in    Adds 1. Without WRITER it is in. Else it is counted but not *admitted*: under the
//                lock it uses a spare admission, or gets on the list.
//   reader out   Subtracts 1. With WRITER: under the lock, departing - 1; the last one lets the
//                first writer on the list in.
//   writer in    Changes 0 to WRITER. Else, under the lock: if WRITER is set, it sets CALL and gets
//                on the list. If not, it sets WRITER: the readers counted at this moment are in,
//                and the writer waits, as the first on the list, until they have departed.
//   writer out   Changes WRITER to 0. Else, under the lock, it admits all readers counted at this
//                moment: it wakes those on the list, and leaves an admission for each that is still
//                on its way there. It wakes the first writer on the list too, which competes, as in
//                [mutex]. At most one writer is woken, and while one is, nobody asks for CALL. But
//                if the first writer starves, WRITER stays, and that writer is let in when the
//                admitted readers have departed.
//
// One of two  A reader adds and reads WRITER in one step. A writer sets WRITER and reads the count
//             in one step. So for each reader: the writer has counted it as being in, or it has
//             seen the writer.
// No loss     A reader that was not in when it came is counted by exactly one writer's way out. It
//             gets a wake-up, or that writer leaves an admission for a reader on its way. Any
//             reader may use an admission: the count is the same. Writers: whenever the lock is
//             free and a writer is on the list, one is woken, or CALL is set, or readers depart for
//             the first.
// Dropped     The end of run() drops goroutines on the lists, a woken writer, and goroutines that
//             were let in and have not run yet; they tell nobody. The next caller that finds the
//             mutex taken takes back what they were given (in_transit.h). Plain threads that wait
//             are told to do that, and to see to the writers' list. Nobody is dropped on the way
//             to the list: a reader that a writer keeps out is inside the runtime before it adds 1.
// Given up    A reader or a writer whose context is over, or whose time is up, takes itself off its
//             list, under the lock. A reader is no longer counted. A writer leaves its place to the
//             next; a woken writer sees to the list as it would have done. If readers were
//             departing for it and no other writer is there, WRITER is *abandoned*. Nobody could
//             tell the readers that are in from those on their way, so WRITER stays until all have
//             gone. But nobody waits for it: readers on the list are let in, and so are newcomers,
//             and all are counted as departing. The last to depart takes WRITER away, unless
//             another writer has got on the list by then; that one is let in.
// Fair        New readers wait while WRITER is set. Readers that waited go before the next writer.
//             A writer that has waited for a millisecond is let in next.
// Stripes     Readers on several cores would all write the word. When they meet there often, one of
//             them *opens* the stripes: counts in cache lines of their own, one of which each
//             thread uses. The word then counts STRIPED, which is as much as 2^31 readers: the
//             stripes hold the mutex for reading, on behalf of all who use them. So no writer gets
//             in beside them. A writer first *closes* each stripe, by an exchange that takes its
//             count, and changes STRIPED in the word to the sum. From then on all is as above. A
//             change of a stripe comes before that exchange, and is in the sum, or finds the stripe
//             closed, and the word is changed instead. Readers are not told apart: a reader may
//             come by a stripe and leave by another, or by the word, which may then count a few
//             less than STRIPED. STRIPED and WRITER are never set together; both opening and
//             closing are done under the lock.
// Lifetime    The last touch of a way out is an exchange to 0, or the release of the lock while a
//             waiter that it admits has yet to be woken or to take the lock. A way out that finds
//             nobody to let in changes WRITER to 0 after the lock.
// Orders      [rw-mutex] ways out release, ways in acquire. All changes are read-modify-writes, so
//             a writer that sees the count also sees what the departed readers did. Under the lock,
//             the lock orders. Stripes: ways out release, the exchange that closes acquires, and
//             releases by the change of the word. The thread that opens acquires by its change of
//             the word, and releases to ways in.
// Proof       tests/model/rw_mutex_model.cc
#pragma once

#include <cstdint>

#include "base/atomic.h"

namespace magpie::sync {

// Guarded by the lock.
struct RWCounts {
  std::uint32_t departing = 0;   // readers that the first writer on the list waits for
  std::uint32_t admissions = 0;  // for readers on their way to the list
  std::uint32_t listed = 0;      // readers on the list, also those that have been dropped since
  std::uint32_t starving = 0;    // 1: the first writer on the list has waited long
};

// One stripe: the readers that came by it, less those that left by it.
class RWStripe {
 public:
  using Word = base::Atomic<std::uint64_t>;

  // False: it is closed, use the word.
  [[nodiscard]] static bool try_enter(Word& stripe) {
    std::uint64_t now = stripe.load(base::relaxed);
    while (now != kClosed) {
      // [rw-mutex] acquire, with open()
      if (stripe.compare_exchange_weak(now, now + 1, base::acquire, base::relaxed)) return true;
    }
    return false;
  }
  [[nodiscard]] static bool try_leave(Word& stripe) {
    std::uint64_t now = stripe.load(base::relaxed);
    while (now != kClosed) {
      // [rw-mutex] release, with close()
      if (stripe.compare_exchange_weak(now, now - 1, base::release, base::relaxed)) return true;
    }
    return false;
  }

  // Under the lock. close() returns the count, which may be negative, modulo 2^64.
  static void open(Word& stripe) { stripe.store(kNone, base::release); }  // with try_enter()
  [[nodiscard]] static std::uint64_t close(Word& stripe) {
    return stripe.exchange(kClosed, base::acquire) - kNone;  // with try_leave()
  }

  static constexpr std::uint64_t kClosed = 0;
  // No reader. So far from kClosed that no number of readers gets there.
  static constexpr std::uint64_t kNone = std::uint64_t{1} << 62;
};

class RWWord {
 public:
  using Word = base::Atomic<std::uint64_t>;

  static constexpr std::uint64_t kStriped = std::uint64_t{1} << 31;
  // Readers that came by a stripe may have left by the word since, so it may count fewer than
  // kStriped. Without STRIPED it counts fewer than this.
  static constexpr std::uint64_t kStripedLeast = kStriped / 2;
  static constexpr std::uint64_t kWriter = std::uint64_t{1} << 32;
  static constexpr std::uint64_t kCall = std::uint64_t{1} << 33;

  static std::uint64_t readers_of(std::uint64_t word) { return word & (kWriter - 1); }

  // The public header has twins of these four, inlined.
  [[nodiscard]] static bool try_lock(Word& word) {
    std::uint64_t expected = 0;
    return word.compare_exchange_strong(expected, kWriter, base::acquire, base::relaxed);
  }
  [[nodiscard]] static bool try_unlock(Word& word) {
    std::uint64_t expected = kWriter;
    return word.compare_exchange_strong(expected, 0, base::release, base::relaxed);
  }
  // False: not counted. A writer is there, the stripes are open, or somebody else changed the word.
  [[nodiscard]] static bool try_add_reader(Word& word) {
    std::uint64_t now = word.load(base::relaxed);
    return now < kStripedLeast &&
           word.compare_exchange_strong(now, now + 1, base::acquire, base::relaxed);
  }
  // False: a writer may wait for it.
  [[nodiscard]] static bool remove_reader(Word& word) {
    return word.fetch_sub(1, base::release) < kWriter;
  }

  // False: counted, not admitted.
  [[nodiscard]] static bool add_reader(Word& word) {
    return word.fetch_add(1, base::acquire) < kWriter;
  }

  // The stripes are open, and no writer is there.
  static bool is_striped(std::uint64_t word) { return word >= kStripedLeast && word < kWriter; }

  // ---- under the lock

  // True: the caller opens the stripes.
  [[nodiscard]] static bool try_open(Word& word) {
    std::uint64_t now = word.load(base::relaxed);
    while (now < kStripedLeast) {
      // [rw-mutex] acquire, with a writer's way out; what follows is for readers
      if (word.compare_exchange_weak(now, now + kStriped, base::acquire, base::relaxed))
        return true;
    }
    return false;
  }
  // The stripes are closed, and these are the readers that they had. False: somebody left that no
  // reader was.
  [[nodiscard]] static bool take_over(Word& word, std::uint64_t sum) {
    std::uint64_t change = sum - kStriped;
    // [rw-mutex] release: as the readers that left by a stripe
    return word.fetch_add(change, base::acq_rel) + change < kStripedLeast;
  }

  enum class Announced { holds, waits_for_readers, waits_for_writer };
  enum class WriterList {
    served,   // it is empty, or one of its writers is woken and will look at it
    unserved  // a writer waits that nobody is about to look at
  };
  // The stripes are closed. `others`: the list without the caller. `all`: with it.
  [[nodiscard]] static Announced announce(Word& word, RWCounts& counts, WriterList others,
                                          WriterList all) {
    std::uint64_t now = word.load(base::relaxed);
    for (;;) {
      bool taken = (now & kWriter) != 0;
      bool call = (taken ? all : others) == WriterList::unserved;
      std::uint64_t to = now | kWriter | (call ? kCall : 0);
      if (!word.compare_exchange_weak(now, to, base::acquire, base::relaxed)) continue;
      if (taken) return Announced::waits_for_writer;
      counts.departing = static_cast<std::uint32_t>(readers_of(now));
      return counts.departing == 0 ? Announced::holds : Announced::waits_for_readers;
    }
  }

  // By a reader that is counted but not admitted. True: it is in; false: it gets on the list.
  [[nodiscard]] static bool use_admission(RWCounts& counts) {
    if (counts.admissions != 0) {
      --counts.admissions;
      return true;
    }
    ++counts.listed;
    return false;
  }

  // `writers`: their list. WRITER is set, and no writer holds it or waits for the readers to
  // depart.
  static bool is_abandoned(const RWCounts& counts, WriterList writers) {
    return counts.departing != 0 && writers == WriterList::served;
  }
  // By a reader that is counted but not admitted, and found no admission: it is in.
  static void enter_abandoned(RWCounts& counts) {
    --counts.listed;
    ++counts.departing;
  }
  // By one that is not counted, and does not wait. WRITER stays until it has left: somebody
  // departs.
  static void enter_abandoned_uncounted(Word& word, RWCounts& counts) {
    word.fetch_add(1, base::acquire);  // [rw-mutex] with the way out of the last writer
    ++counts.departing;
  }
  // Readers on the list are in.
  static void admit_listed(RWCounts& counts) {
    counts.departing += counts.listed;
    counts.listed = 0;
  }

  // By a reader that left while a writer was there. True: it was the last, the first writer on the
  // list is in.
  [[nodiscard]] static bool depart(RWCounts& counts) { return --counts.departing == 0; }

  // Readers on the list have been dropped when their run() ended, or took themselves off it: they
  // are not counted any more.
  static void forget(Word& word, RWCounts& counts, std::uint32_t dropped) {
    counts.listed -= dropped;
    word.fetch_sub(dropped, base::relaxed);  // relaxed: they did nothing
  }

  // Readers that were admitted have been dropped before they came. True: the first writer on the
  // list waited for the last of them, it is in.
  [[nodiscard]] static bool remove_dropped(Word& word, RWCounts& counts, std::uint32_t dropped) {
    bool awaited = word.fetch_sub(dropped, base::relaxed) >= kWriter;  // relaxed: they did nothing
    if (!awaited) return false;
    counts.departing -= dropped;
    return counts.departing == 0;
  }

  // By a writer on its way out.
  enum class Releasing {
    not_yet,                 // nobody waits: unlock the lock, then try_unlock
    to_readers,              // wake all readers on the list
    to_readers_and_compete,  // the same, and the first writer: it is woken
    to_writer                // the first writer on the list is in
  };
  enum class Writers { none, waiting, starving };
  [[nodiscard]] static Releasing release(Word& word, RWCounts& counts, Writers writers) {
    std::uint64_t now = word.load(base::relaxed);
    for (;;) {
      std::uint64_t readers = readers_of(now);
      std::uint64_t to = readers;
      if (writers == Writers::starving) to = now;
      if (writers == Writers::none && readers == 0) to = kWriter;
      // release, with the acquire of the next owner
      if (!word.compare_exchange_weak(now, to, base::acq_rel, base::relaxed)) continue;
      counts.admissions += static_cast<std::uint32_t>(readers) - counts.listed;
      counts.listed = 0;
      if (writers == Writers::waiting) return Releasing::to_readers_and_compete;
      if (readers == 0) return writers == Writers::none ? Releasing::not_yet : Releasing::to_writer;
      if (writers == Writers::starving) counts.departing = static_cast<std::uint32_t>(readers);
      return Releasing::to_readers;
    }
  }

  // A writer was let in from the list: is anybody left on it?
  static void set_call(Word& word, WriterList others) {
    std::uint64_t now = word.load(base::relaxed);
    for (;;) {
      std::uint64_t to = others == WriterList::unserved ? now | kCall : now & ~kCall;
      // relaxed: the lock orders the list
      if (word.compare_exchange_weak(now, to, base::relaxed, base::relaxed)) return;
    }
  }
};

}  // namespace magpie::sync
