// Model of [rw-mutex]: readers and writers come, wait for each other, and leave.
//
// Checked   A writer is alone and readers see what it wrote (a plain variable); everybody gets in;
//           at the end no count is left; the last to get in may destroy the mutex while the others'
//           unlock has not returned (a plain variable stands for its memory); readers that were
//           dropped while they waited hold nobody up, nor do those who gave up.
// Bounds    A writer and a reader: every interleaving. Else as many preemptions as main() says.
// Stands in The lists' lock, the lists, and the sleep, of which only the wake-up matters here;
//           rw_mutex.cc's steps.
//
// Mutant MUTANT_RELAXED_RELEASE   a writer does not see that the readers are through, or they not
//                                 what it wrote
// Mutant MUTANT_RELAXED_ACQUIRE   the same
// Mutant MUTANT_NO_ADMISSIONS     a reader on its way to the list is not counted when readers are
//                                 let in
// Mutant MUTANT_NO_CALL           a writer gets in line without saying so
// Mutant MUTANT_FORGETS_LINE      a woken writer goes in and does not look at the line
// Mutant MUTANT_FREE_HAND_OVER    the mutex is free while a starving writer is let in
// Mutant MUTANT_GHOSTS            readers that were dropped stay counted
// Mutant MUTANT_LEAVES_EARLY      with nobody waiting, the mutex is given back before the lists'
//                                 lock
// Mutant MUTANT_STAYS_COUNTED     a reader that gave up stays counted
// Mutant MUTANT_LEAVES_LINE       a woken writer that gives up does not look at the line
// Mutant MUTANT_OPENS_ANYWAY      stripes are opened beside a writer
// Mutant MUTANT_SUM_LOST          who came by a stripe is not counted when it is closed
// Mutant MUTANT_WORD_FIRST        the word gives up the stripes before they are closed
// Mutant MUTANT_EXACT_STRIPED     a reader leaves by the word, and the stripes seem closed
// Mutant MUTANT_NOT_DEPARTING     those who are let in by a writer that gives up are not counted as
//                                 departing
#include "model_run.h"
#include "waiters.h"

#include "sync/rw_mutex_core.h"

namespace {

using magpie::base::Atomic;
using magpie::base::relaxed;
using magpie::base::release;
using magpie::sync::RWCounts;
using magpie::sync::RWStripe;
using magpie::sync::RWWord;
using model::chosen;

constexpr int kMost = 3;

// rw_mutex.cc
struct RWMutex {
  Atomic<std::uint64_t> word{0};
  model::Memory memory;
  model::ListLock list_lock{memory};
  RWCounts counts;       // guarded by the lock
  rl::var<int> readers;  // who is on the list: bits
  model::Line writers;
  rl::var<int> woken;
  rl::var<int> let_in[kMost];
  model::WakeUp wake_up[kMost];
  struct Stripe {
    RWStripe::Word word{0};
  } stripes[2];

  RWMutex() {
    readers(RL_INFO) = 0;
    woken(RL_INFO) = 0;
    for (auto& mark : let_in) mark(RL_INFO) = 0;
  }

  void open_stripes() {
    list_lock.lock();
    if (RWWord::try_open(word) || chosen<"MUTANT_OPENS_ANYWAY">()) {
      for (Stripe& stripe : stripes) RWStripe::open(stripe.word);
    }
    list_lock.unlock();
  }

  bool is_striped() {
    std::uint64_t now = word.load(relaxed);
    if (chosen<"MUTANT_EXACT_STRIPED">() && now < RWWord::kStriped) return false;
    return RWWord::is_striped(now);
  }

  void close_stripes() {
    if (!is_striped()) return;
    if (chosen<"MUTANT_WORD_FIRST">()) (void)RWWord::take_over(word, 0);
    std::uint64_t sum = 0;
    for (Stripe& stripe : stripes) sum += RWStripe::close(stripe.word);
    if (chosen<"MUTANT_SUM_LOST">()) sum = 0;
    if (chosen<"MUTANT_WORD_FIRST">()) {
      word.fetch_add(sum, release);
    } else {
      RL_ASSERT(RWWord::take_over(word, sum));
    }
  }

  // The stripes belong to none of the readers. Whether they may be open is known at compile time:
  // a look at the word is one more step.
  enum class Stripes { none, first, second };
  static int index_of(Stripes stripe) { return stripe == Stripes::first ? 0 : 1; }

  RWWord::WriterList line() {
    return writers.size() == 0 ? RWWord::WriterList::served : RWWord::WriterList::unserved;
  }

  void let_first_in() {
    let_in[writers.first()](RL_INFO) = 1;
    writers.remove(writers.first());
    counts.starving = 0;
    RWWord::set_call(word, line());
  }

  // cancelled: its context is over as soon as it waits.
  enum class Patience { usual, starving, cancelled };
  // False: it gave up.
  bool lock(int self, Patience patience) {
    if (RWWord::try_lock(word)) return true;
    for (bool newcomer = true;; newcomer = false) {
      list_lock.lock();
      if (!newcomer) woken(RL_INFO) = 0;
      bool will_be_served = woken(RL_INFO) != 0;
      auto all = will_be_served ? RWWord::WriterList::served : RWWord::WriterList::unserved;
      auto others = will_be_served ? all : line();
      if (chosen<"MUTANT_NO_CALL">() && newcomer) all = RWWord::WriterList::served;
      if (chosen<"MUTANT_FORGETS_LINE">()) others = RWWord::WriterList::served;
      close_stripes();
      auto announced = RWWord::announce(word, counts, others, all);
      if (announced == RWWord::Announced::holds) {
        list_lock.unlock();
        return true;
      }
      if (newcomer && announced == RWWord::Announced::waits_for_writer) {
        writers.push_back(self);
      } else {
        writers.push_front(self);
        counts.starving = !newcomer && patience == Patience::starving ? 1 : 0;
      }
      list_lock.unlock();
      if (patience == Patience::cancelled && withdraw_writer(self)) return false;
      wake_up[self].wait();
      if (let_in[self](RL_INFO) != 0) {
        let_in[self](RL_INFO) = 0;
        return true;
      }
      if (patience == Patience::cancelled) return last_attempt();
    }
  }

  bool withdraw_writer(int self) {
    list_lock.lock();
    bool is_first = writers.first() == self;
    bool listed = writers.remove(self);
    int taken = 0;
    if (listed) {
      if (is_first) counts.starving = 0;
      if (line() == RWWord::WriterList::served) RWWord::set_call(word, line());
      if (RWWord::is_abandoned(counts, line())) {
        taken = take_readers();
        if (chosen<"MUTANT_NOT_DEPARTING">()) {
          counts.listed = 0;
        } else {
          RWWord::admit_listed(counts);
        }
      }
    }
    list_lock.unlock();
    send_to(taken);
    return listed;
  }

  bool last_attempt() {
    list_lock.lock();
    woken(RL_INFO) = 0;
    bool holds = false;
    if (line() == RWWord::WriterList::unserved && !chosen<"MUTANT_LEAVES_LINE">()) {
      close_stripes();
      holds = RWWord::announce(word, counts, line(), line()) == RWWord::Announced::holds;
    }
    list_lock.unlock();
    return holds;
  }

  void send_to(int taken) {
    for (int i = 0; i < kMost; ++i) {
      if ((taken >> i & 1) != 0) wake_up[i].send();
    }
  }

  // False: it got in line and was dropped there, or gave up.
  enum class Fate { usual, dropped, cancelled };
  bool lock_shared(int self, Fate fate, Stripes stripe) {
    if (RWWord::try_add_reader(word)) return true;
    if (stripe != Stripes::none && is_striped() &&
        RWStripe::try_enter(stripes[index_of(stripe)].word)) {
      return true;
    }
    if (RWWord::add_reader(word)) return true;
    list_lock.lock();
    bool admitted = RWWord::use_admission(counts);
    if (!admitted && RWWord::is_abandoned(counts, line())) {
      RWWord::enter_abandoned(counts);
      admitted = true;
    }
    if (!admitted && fate != Fate::dropped) readers(RL_INFO) = readers(RL_INFO) | 1 << self;
    list_lock.unlock();
    if (admitted) return true;
    if (fate == Fate::dropped) return false;
    if (fate == Fate::cancelled && withdraw_reader(self)) return false;
    wake_up[self].wait();
    return true;
  }

  bool withdraw_reader(int self) {
    list_lock.lock();
    bool listed = (readers(RL_INFO) >> self & 1) != 0;
    if (listed) {
      readers(RL_INFO) = readers(RL_INFO) & ~(1 << self);
      if (chosen<"MUTANT_STAYS_COUNTED">()) {
        --counts.listed;
      } else {
        RWWord::forget(word, counts, 1);
      }
    }
    list_lock.unlock();
    return listed;
  }

  void unlock_shared(Stripes stripe) {
    if (stripe != Stripes::none && is_striped() &&
        RWStripe::try_leave(stripes[index_of(stripe)].word)) {
      return;
    }
    if (RWWord::remove_reader(word)) return;
    list_lock.lock();
    RL_ASSERT(counts.departing != 0);
    if (!RWWord::depart(counts)) return list_lock.unlock();
    int writer = writers.first();
    if (writer >= 0) let_first_in();
    list_lock.unlock();
    if (writer >= 0) {
      wake_up[writer].send();
    } else {
      unlock();  // it gave up
    }
  }

  int take_readers() {
    int taken = readers(RL_INFO);
    readers(RL_INFO) = 0;
    std::uint32_t number = 0;
    for (int i = 0; i < kMost; ++i) number += taken >> i & 1;
    if (number != counts.listed && !chosen<"MUTANT_GHOSTS">())
      RWWord::forget(word, counts, counts.listed - number);
    return taken;
  }

  void unlock() {
    while (!RWWord::try_unlock(word)) {
      list_lock.lock();
      RL_ASSERT(counts.departing == 0);
      int taken = take_readers();
      int writer = writers.first();
      auto waiting = RWWord::Writers::none;
      if (writer >= 0 && woken(RL_INFO) == 0) {
        waiting = counts.starving != 0 ? RWWord::Writers::starving : RWWord::Writers::waiting;
      }
      RWWord::Releasing releasing = RWWord::release(word, counts, waiting);
      if (chosen<"MUTANT_NO_ADMISSIONS">()) counts.admissions = 0;
      if (releasing == RWWord::Releasing::not_yet) {
        if (chosen<"MUTANT_LEAVES_EARLY">() && RWWord::try_unlock(word)) return list_lock.unlock();
        list_lock.unlock();
        continue;
      }
      if (releasing == RWWord::Releasing::to_readers_and_compete) {
        writers.remove(writer);
        woken(RL_INFO) = 1;
        taken |= 1 << writer;
      } else if (releasing == RWWord::Releasing::to_writer) {
        let_first_in();
        taken |= 1 << writer;
        if (chosen<"MUTANT_FREE_HAND_OVER">()) word.fetch_sub(RWWord::kWriter, release);
      }
      list_lock.unlock();
      send_to(taken);
      return;
    }
  }
};

// What each thread does: w writes, W writes twice and is starving, r reads, d reads, but is dropped
// if it has to wait; c and q write and read, but give up if they have to wait; s opens the stripes
// and reads; - is nobody. With an s, readers leave by another stripe than they came by.
template <char first, char second, char third>
struct Use : model::Scenario<third == '-' ? 2 : 3> {
  static constexpr int kThreads = third == '-' ? 2 : 3;
  static constexpr int kVisits = kThreads + (first == 'W') + (second == 'W') + (third == 'W');
  static constexpr bool reads(char does) { return does == 'r' || does == 'q' || does == 's'; }
  static constexpr bool kStriped = first == 's' || second == 's' || third == 's';
  using Stripes = RWMutex::Stripes;
  static constexpr int kReaders = reads(first) + reads(second) + reads(third);

  RWMutex mutex;
  rl::var<int> value;
  Atomic<std::uint32_t> to_come{kVisits};

  void before() override { value(RL_INFO) = 0; }

  void thread(unsigned index) override {
    int self = static_cast<int>(index);
    char does = self == 0 ? first : self == 1 ? second : third;
    if (does == 'w') {
      write(self, RWMutex::Patience::usual);
    } else if (does == 'c') {
      write(self, RWMutex::Patience::cancelled);
    } else if (does == 'W') {
      write(self, RWMutex::Patience::starving);
      write(self, RWMutex::Patience::starving);
    } else if (does == 's') {
      mutex.open_stripes();
      (void)mutex.lock_shared(self, RWMutex::Fate::usual, Stripes::first);
      read(Stripes::second);
    } else if (mutex.lock_shared(self,
                                 does == 'd'   ? RWMutex::Fate::dropped
                                 : does == 'q' ? RWMutex::Fate::cancelled
                                               : RWMutex::Fate::usual,
                                 kStriped ? Stripes::first : Stripes::none)) {
      read(kStriped ? Stripes::second : Stripes::none);
    } else {
      (void)is_last();
    }
  }

  void write(int self, RWMutex::Patience patience) {
    if (!mutex.lock(self, patience)) return (void)is_last();
    value(RL_INFO) = value(RL_INFO) + 1;
    bool last = is_last();
    mutex.unlock();
    if (last) mutex.memory.destroy();
  }
  void read(Stripes way_out) {
    (void)static_cast<int>(value(RL_INFO));
    bool last = is_last();
    mutex.unlock_shared(way_out);
    if (last && kReaders == 1) mutex.memory.destroy();  // else other readers may still hold it
  }
  bool is_last() { return to_come.fetch_sub(1, std::memory_order_acq_rel) == 1; }

  void after() override {
    std::uint64_t count = mutex.word.peek();
    if (RWWord::is_striped(count)) {
      count -= RWWord::kStriped;
      for (auto& stripe : mutex.stripes) count += stripe.word.peek() - RWStripe::kNone;
    }
    RL_ASSERT(count == 0);
  }
};

}  // namespace

int main(int argc, char** argv) {
  return model::Runs(argc, argv)
      .explore<Use<'w', 'r', '-'>>("a writer, a reader", model::full())
      .explore<Use<'w', 'w', '-'>>("two writers", model::bounded(6))
      .explore<Use<'w', 'c', 'w'>>("a writer that gives up, two writers", model::bounded(3))
      .explore<Use<'c', 'r', 'r'>>("a writer that gives up, two readers", model::bounded(4))
      .explore<Use<'w', 'w', 'd'>>("two writers, a reader that is dropped", model::bounded(3))
      .explore<Use<'w', 'w', 'r'>>("two writers, a reader", model::bounded(3))
      .explore<Use<'w', 'r', 'r'>>("a writer, two readers", model::bounded(4))
      .explore<Use<'W', 'W', '-'>>("two starving writers, twice", model::bounded(4))
      .explore<Use<'W', 'W', 'r'>>("two starving writers, twice, a reader", model::bounded(3))
      .explore<Use<'w', 'w', 'w'>>("three writers", model::bounded(3))
      .explore<Use<'c', 'r', '-'>>("a writer that gives up, a reader", model::full())
      .explore<Use<'w', 'q', '-'>>("a writer, a reader that gives up", model::full())
      .explore<Use<'w', 'c', 'r'>>("a writer that gives up, a writer, a reader", model::bounded(3))
      .explore<Use<'c', 'c', 'r'>>("two writers that give up, a reader", model::bounded(3))
      .explore<Use<'c', 'q', 'r'>>("a writer and a reader that give up, a reader",
                                   model::bounded(4))
      .explore<Use<'w', 's', '-'>>("a writer, a reader with stripes", model::bounded(5))
      .explore<Use<'s', 's', '-'>>("two readers with stripes", model::bounded(3))
      .explore<Use<'s', 'r', '-'>>("a reader that opens stripes, a reader", model::bounded(3))
      .explore<Use<'w', 's', 'r'>>("a writer, two readers with stripes", model::bounded(2))
      .explore<Use<'w', 'w', 's'>>("two writers, a reader with stripes", model::bounded(2))
      .explore<Use<'w', 's', 'q'>>("a writer, a reader with stripes, a reader that gives up",
                                   model::bounded(2))
      .explore<Use<'c', 's', 'r'>>("a writer that gives up, two readers with stripes",
                                   model::bounded(2))
      .report();
}
