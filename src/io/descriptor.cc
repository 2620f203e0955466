#include "io/descriptor.h"

#include <unistd.h>

#include <chrono>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include <magpie/time.h>

#include "base/clock.h"
#include "sched/descriptors.h"
#include "sched/run_end.h"
#include "sched/waiter.h"

namespace magpie::io {

using poll::Slot;
using sched::Presence;
using sched::Waiter;

Descriptor::Descriptor(int fd, Kind kind)
    : fd_(fd),
      kind_(kind),
      reader_(*this, &Slot::read, sched::WaitReason::io_read),
      writer_(*this, &Slot::write, sched::WaitReason::io_write) {}

Descriptor::~Descriptor() {
  close();
  // Woken users finish. Users of a run() that has ended never will, and are forgotten.
  for (;;) {
    (void)forget_earlier_run();
    if (closing_.is_gone()) return;
    magpie::sleep_for(std::chrono::microseconds(20));
  }
}

// ---- limits

// Wakes the goroutine that has the side once its limit is over; see wake().
class Descriptor::Interruption {
 public:
  Interruption(Side& side, std::stop_token token) : callback_(std::move(token), Wake{&side}) {}

 private:
  struct Wake {
    Side* side;
    void operator()() const noexcept { side->descriptor.wake(*side); }
  };
  std::stop_callback<Wake> callback_;
};

Descriptor::Side::Side(Descriptor& its, poll::Readiness Slot::*word, sched::WaitReason why)
    : descriptor(its), readiness(word), reason(why), deadline(wake_waiter, this) {}
Descriptor::Side::~Side() = default;

// ---- registration

Slot* Descriptor::slot_of(const Presence& here) { return registration_.slot_in(here.generation()); }

Descriptor::Registered Descriptor::register_once(Presence& here, int& error) {
  error = 0;
  if (here.generation() == 0) return Registered::no_runtime;
  if (slot_of(here) != nullptr) return Registered::already;
  std::lock_guard hold(lock_);
  if (slot_of(here) != nullptr) return Registered::already;
  sched::Network::Attached attached = sched::attach_descriptor(fd_);
  error = attached.error;
  registration_.set_locked(attached.slot, here.generation());
  return Registered::now;
}

Closing::User Descriptor::forget_earlier_run() {
  // A goroutine keeps its run() from ending while it runs, so it looks without entering the
  // runtime. A plain thread would have to visit: forget_earlier_runs() does.
  if (sched::current_m() == nullptr) [[unlikely]] {
    forget_earlier_runs();
    return Closing::User::thread;
  }
  if (run_of_users_.load(base::acquire) != sched::current_run()) [[unlikely]]  // with forget_run()
    forget_earlier_runs();
  return Closing::User::goroutine;
}

// What is left of a run(): to be done with outside, as it frees and wakes.
struct Descriptor::LeftBehind {
  bool mutex[2] = {false, false};
  std::unique_ptr<Interruption> interruption[2];
  bool number = false;
};

void Descriptor::forget_earlier_runs() {
  for (;;) {
    LeftBehind left;
    {
      Presence here;
      const std::uint64_t now = here.generation();
      std::uint64_t run = run_of_users_.load(base::acquire);  // with forget_run()
      if (run == now) return;
      // A plain thread without a runtime: maybe it only comes too late, and the run() is about to
      // end.
      if (now == 0 && !sched::is_over(run)) return;
      forget_run(run, now, left);
    }
    if (left.mutex[0]) reader_.mutex.unlock();
    if (left.mutex[1]) writer_.mutex.unlock();
    if (left.number) give_number_back();
  }
}

// A descriptor may outlive its run(). The goroutines that used it are gone, and so are their locks.
// Plain threads are not gone. If a thread has a side, it keeps it. If it waits behind a
// goroutine that is gone, the side is given up for it. The first user in a
// later run() calls this before it begins to use the descriptor, so no user of that run() is
// forgotten.
void Descriptor::forget_run(std::uint64_t run, std::uint64_t now, LeftBehind& left) {
  Side* const sides[2] = {&reader_, &writer_};
  std::lock_guard hold(lock_);
  if (run_of_users_.load(base::relaxed) != run) return;  // relaxed: written under the lock
  if (run != 0) {
    left.number = closing_.forget_goroutines() == Closing::Forgotten::were_last;
    for (int i = 0; i < 2; ++i) {
      bool is_orphaned = sides[i]->run_of_holder == run;
      if (sides[i]->threads == 0) {
        new (&sides[i]->mutex) Mutex;
      } else if (is_orphaned) {
        left.mutex[i] = true;
      } else {
        continue;
      }
      sides[i]->run_of_holder = 0;
      sides[i]->drained = false;
      left.interruption[i] = std::move(sides[i]->interruption);
    }
    // A plain thread that came in before this run() began may have registered in it already.
    if (registration_.generation() != now) registration_.forget_locked();
  }
  run_of_users_.store(now, base::release);  // with forget_earlier_run()
}

void Descriptor::count_thread(Side& side, int change) {
  std::lock_guard hold(lock_);
  side.threads += change;
}

void Descriptor::give_number_back() {
  {
    Presence here;
    if (Slot* slot = slot_of(here)) sched::detach_descriptor(fd_, slot);
  }
  if (kind_ != Kind::borrowed) ::close(fd_);
  closing_.note_gone();
}

// ---- waking

// Takes the registration's lock: a user that registers after this sees what was said before it.
void Descriptor::wake(Side& side) {
  Presence here;
  lock_.lock();
  Slot* slot = slot_of(here);
  lock_.unlock();
  if (slot == nullptr) return;
  if (auto* waiter = static_cast<Waiter*>((slot->*side.readiness).set())) waiter->wake();
}

void* Descriptor::Side::wake_waiter(void* side) {
  auto& self = *static_cast<Side*>(side);
  Presence here;
  Descriptor& its = self.descriptor;
  its.lock_.lock();
  Slot* slot = its.slot_of(here);
  its.lock_.unlock();
  if (slot == nullptr) return nullptr;
  auto* waiter = static_cast<Waiter*>((slot->*self.readiness).set());
  return waiter == nullptr ? nullptr : waiter->wake_thread_or_take_goroutine();
}

void Descriptor::set_deadline(Side& side, std::int64_t when_ns) {
  side.deadline.set(when_ns);
  if (when_ns != timer::kNever && when_ns <= base::now_ns()) wake(side);
}

void Descriptor::close() {
  switch (closing_.close()) {
    case Closing::Close::already:
      return;
    case Closing::Close::by_caller:
      return give_number_back();
    case Closing::Close::by_last_user:
      break;
  }
  wake(reader_);
  wake(writer_);
}

Descriptor::KeptOpen::KeptOpen(Descriptor& descriptor)
    : descriptor_(descriptor),
      user_(descriptor.forget_earlier_run()),
      is_inside_(descriptor.closing_.begin_use(user_)) {}

Descriptor::KeptOpen::~KeptOpen() {
  if (is_inside_ && descriptor_.closing_.end_use(user_)) descriptor_.give_number_back();
}

// ---- operations

Descriptor::Operation::Operation(Descriptor& descriptor, Side& side, const char* what,
                                 const Limit* limit)
    : descriptor_(descriptor),
      side_(side),
      what_(what),
      limit_(limit),
      user_(descriptor.forget_earlier_run()) {
  if (!descriptor.closing_.begin_use(user_)) [[unlikely]] {
    error_ = ECANCELED;
    return;
  }
  if (user_ == Closing::User::thread) [[unlikely]]
    descriptor.count_thread(side, 1);
  if (limit == nullptr) [[likely]] {
    side.mutex.lock();
  } else if (!limit->lock(side.mutex)) {
    error_ = limit->error();
    end_use();
    return;
  }
  has_side_ = true;
  if (user_ == Closing::User::goroutine) [[likely]]
    side.run_of_holder = sched::current_run();
}

Descriptor::Operation::~Operation() {
  if (!has_side_) [[unlikely]]
    return;
  if (limit_ != nullptr) [[unlikely]]
    side_.interruption.reset();
  side_.run_of_holder = 0;
  side_.mutex.unlock();
  end_use();
}

void Descriptor::Operation::end_use() {
  if (user_ == Closing::User::thread) [[unlikely]]
    descriptor_.count_thread(side_, -1);
  if (descriptor_.closing_.end_use(user_)) [[unlikely]]
    descriptor_.give_number_back();
}

// False: it has failed; or the last read left nothing behind and nothing has happened since: the
// attempt would be in vain.
bool Descriptor::Operation::prepare() {
  bool has_slot = false, always_try = false;
  {
    Presence here;
    if (Slot* slot = descriptor_.slot_of(here)) {
      has_slot = true;
      // Written down before anything fails: the next one to try knows of it from here alone.
      if ((slot->*side_.readiness).forget()) side_.drained = false;
      always_try = slot->always_try.load(base::relaxed);
    }
  }
  if (descriptor_.is_closed()) [[unlikely]] {
    error_ = ECANCELED;
  } else if (side_.deadline.has_passed()) [[unlikely]] {
    error_ = ETIMEDOUT;
  } else if (limit_ != nullptr) [[unlikely]] {
    error_ = limit_->error();
  }
  if (error_ != 0) return false;
  bool in_vain = has_slot && side_.drained && !always_try;
  if (!in_vain) side_.drained = false;
  return !in_vain;
}

void Descriptor::Operation::note_result(std::size_t count, std::size_t wanted) {
  side_.drained = descriptor_.kind_ == Kind::stream && count != 0 && count < wanted;
}

// If the limit is over by now its callback is called here, and sets the word of the side, or,
// without a slot yet, is heard of after the registration: as with close().
void Descriptor::Operation::wait() {
  if (limit_ != nullptr && side_.interruption == nullptr) [[unlikely]]
    side_.interruption = std::make_unique<Interruption>(side_, limit_->stop_token());
  Registered registered = sleep_unless_new(error_);
  if (registered == Registered::no_runtime) {
    throw std::logic_error(std::string("magpie: ") + what_ +
                           ": no runtime runs; wait for descriptors inside magpie::run()");
  }
  if (error_ != 0) return;
  if (registered == Registered::now) {
    for (Side* side : {&descriptor_.reader_, &descriptor_.writer_}) side->deadline.arm_if_set();
  }
}

// After the registration the caller tries again before it sleeps: see Descriptor::wake().
Descriptor::Registered Descriptor::Operation::sleep_unless_new(int& error) {
  struct Wait {
    explicit Wait(const int& fd) : waiter(&fd) {}
    Presence here;
    poll::Readiness* readiness = nullptr;
    Waiter waiter;
  } wait(descriptor_.fd_);
  Registered registered = descriptor_.register_once(wait.here, error);
  if (registered == Registered::already) {
    wait.readiness = &(descriptor_.slot_of(wait.here)->*side_.readiness);
    wait.waiter.wait(
        side_.reason,
        [](Waiter& waiter, void* argument) {
          auto& self = *static_cast<Wait*>(argument);
          bool is_thread = waiter.is_thread();
          bool waits = self.readiness->begin_wait(&waiter);
          // A goroutine may be gone now. A thread is here.
          if (is_thread) {
            if (waits) sched::want_events();
            self.here.end();
          }
          return waits;
        },
        &wait);
  }
  return registered;
}

}  // namespace magpie::io
