// Model of [readiness] and [closing]: one waits for a descriptor while events come and others close
// it.
//
// The user mirrors descriptor.cc (Turn::perform, Turn::wait), the poller network.cc (deliver), the
// closer Descriptor::close(). The kernel is a count of bytes under its own lock; it says that
// something has come after it has come.
//
// Checked   Nobody sleeps for ever; a waker sees the record it wakes; nobody uses the number after
//           it was given back, which happens once; the owner's memory is not touched after GONE.
// Bounds    See main(). A system call would block or not; spurious events come at any time.
//
// Mutant MUTANT_BLIND_EXCHANGE    an event that came before the record is overwritten
// Mutant MUTANT_RELAXED_RELEASE   what was said before set() is not seen, nor the record
// Mutant MUTANT_RELAXED_ACQUIRE   the same
// Mutant MUTANT_WAKE_FIRST        the closer wakes before it says that it closes
// Mutant MUTANT_CLOSE_AT_ONCE     the closer gives the number back although somebody uses it
// Mutant MUTANT_TRY_FIRST         the user forgets events after it has tried
// Mutant MUTANT_FORGETS_BLINDLY   who forgets dropped goroutines does not ask whether they were the
//                                 last
#include "model_run.h"

#include "io/closing.h"
#include "poll/readiness.h"

namespace {

using magpie::io::Closing;
using magpie::poll::Readiness;
using model::chosen;

constexpr Closing::User kUser = Closing::User::goroutine;

struct Socket {
  Readiness readiness;
  Closing closing;
  rl::mutex kernel;
  rl::var<int> bytes;   // guarded by kernel
  rl::var<int> number;  // 1: ours; 0: given back, and maybe another's
  rl::var<int> memory;  // 1: the owner's; 0: freed

  struct Record {
    rl::var<int> known;
    rl::generic_event wake_up;
    Record() { wake_up.init(false, false, RL_INFO); }
    ~Record() { wake_up.deinit(RL_INFO); }
  };

  void before() {
    bytes(RL_INFO) = 0;
    number(RL_INFO) = 1;
    memory(RL_INFO) = 1;
  }

  void wake(void* waiter) {
    if (waiter == nullptr) return;
    auto* record = static_cast<Record*>(waiter);
    RL_ASSERT(record->known(RL_INFO) == 1);
    record->wake_up.set(RL_INFO);
  }

  bool try_to_read() {
    RL_ASSERT(number(RL_INFO) == 1);
    kernel.lock(RL_INFO);
    bool got = bytes(RL_INFO) != 0;
    if (got) bytes(RL_INFO) = bytes(RL_INFO) - 1;
    kernel.unlock(RL_INFO);
    return got;
  }

  // True: it got a byte; false: closed.
  bool read(Record& record) {
    if (!closing.begin_use(kUser)) return false;
    bool got = false;
    for (;;) {
      bool try_first = chosen<"MUTANT_TRY_FIRST">();
      if (!try_first) readiness.forget();
      if (closing.is_closed()) break;
      got = try_to_read();
      if (got) break;
      if (try_first) readiness.forget();
      record.known(RL_INFO) = 1;
      if (readiness.begin_wait(&record)) record.wake_up.wait(false, false, RL_INFO);
    }
    if (closing.end_use(kUser)) give_number_back();
    return got;
  }

  void give_number_back() {
    RL_ASSERT(number(RL_INFO) == 1);
    number(RL_INFO) = 0;
    memory(RL_INFO) = memory(RL_INFO);  // the last touch is before GONE
    closing.note_gone();
  }

  void byte_comes() {
    kernel.lock(RL_INFO);
    bytes(RL_INFO) = bytes(RL_INFO) + 1;
    kernel.unlock(RL_INFO);
    wake(readiness.set());
  }

  void close() {
    if (chosen<"MUTANT_WAKE_FIRST">()) wake(readiness.set());
    Closing::Close who = closing.close();
    if (who == Closing::Close::already) return;
    if (who == Closing::Close::by_caller || chosen<"MUTANT_CLOSE_AT_ONCE">())
      return give_number_back();
    if (!chosen<"MUTANT_WAKE_FIRST">()) wake(readiness.set());
  }

  // By the first of a later run(), or the owner.
  void forget_goroutines() {
    Closing::Forgotten they = closing.forget_goroutines();
    if (they == Closing::Forgotten::were_last && !chosen<"MUTANT_FORGETS_BLINDLY">())
      give_number_back();
  }

  // The owner, after close().
  void free() {
    while (!closing.is_gone()) rl::yield(1, RL_INFO);
    memory(RL_INFO) = 0;
  }
};

// A byte comes while one is about to wait for it.
struct Arrival : model::Scenario<2> {
  Socket socket;
  Socket::Record record;
  void before() override { socket.before(); }
  void thread(unsigned index) override {
    if (index == 0) {
      RL_ASSERT(socket.read(record));
    } else {
      socket.wake(socket.readiness.set());  // spurious: of a former owner
      socket.byte_comes();
    }
  }
};

// It is closed, and freed, while one waits or is about to, and another byte may or may not come.
struct Closed : model::Scenario<3> {
  Socket socket;
  Socket::Record record;
  void before() override { socket.before(); }
  void thread(unsigned index) override {
    if (index == 0) {
      socket.read(record);
    } else if (index == 1) {
      socket.close();
      socket.free();
    } else {
      socket.wake(socket.readiness.set());  // an event that says nothing; slots outlive descriptors
    }
  }
  void after() override { RL_ASSERT(socket.number(RL_INFO) == 0); }
};

// Two close it while one reads.
struct ClosedTwice : model::Scenario<3> {
  Socket socket;
  Socket::Record record;
  void before() override { socket.before(); }
  void thread(unsigned index) override {
    if (index == 0) {
      socket.read(record);
    } else {
      socket.close();
    }
  }
  void after() override { RL_ASSERT(socket.number(RL_INFO) == 0); }
};

// A goroutine was dropped inside. It is forgotten while a plain thread leaves and the owner closes
// and frees it.
struct Dropped : model::Scenario<3> {
  Socket socket;
  void before() override {
    socket.before();
    RL_ASSERT(socket.closing.begin_use(Closing::User::goroutine));
    RL_ASSERT(socket.closing.begin_use(Closing::User::thread));
  }
  void thread(unsigned index) override {
    if (index == 0) {
      RL_ASSERT(socket.number(RL_INFO) == 1);
      if (socket.closing.end_use(Closing::User::thread)) socket.give_number_back();
    } else if (index == 1) {
      socket.close();
    } else {
      socket.forget_goroutines();
    }
  }
  void after() override {
    RL_ASSERT(socket.number(RL_INFO) == 0);
    RL_ASSERT(socket.closing.is_gone());
  }
};

}  // namespace

int main(int argc, char** argv) {
  return model::Runs(argc, argv)
      .explore<Arrival>("a byte comes", model::full())
      .explore<Closed>("closed while one waits", model::bounded(4))
      .explore<ClosedTwice>("closed by two", model::bounded(4))
      .explore<Dropped>("a dropped one is forgotten", model::full())
      .explore<Closed>("closed while one waits", model::random(200'000))
      .report();
}
