#include "io/descriptor.h"

#include <unistd.h>

#include <mutex>
#include <new>
#include <stdexcept>
#include <system_error>

#include <magpie/runtime.h>
#include <magpie/time.h>

#include "base/clock.h"
#include "sched/runtime.h"
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
  // Those who were woken leave; users of a run() that has ended never will.
  while (!closing_.is_gone()) {
    bool anybody_left;
    {
      Presence here;
      std::uint64_t generation = registration_.generation();
      anybody_left = generation == 0 || generation == here.generation();
    }
    if (!anybody_left) {
      if (kind_ != Kind::borrowed) ::close(fd_);
      return;
    }
    magpie::sleep_for(std::chrono::microseconds(20));
  }
}

// ---- registration

Slot* Descriptor::slot_of(const Presence& here) { return registration_.slot_in(here.generation()); }

Descriptor::Registered Descriptor::register_once(Presence& here, int& error) {
  error = 0;
  if (here.generation() == 0) return Registered::no_runtime;
  if (slot_of(here) != nullptr) return Registered::already;
  std::lock_guard hold(lock_);
  if (slot_of(here) != nullptr) return Registered::already;
  sched::Network::Attached attached = sched::runtime->network.attach(fd_);
  error = attached.error;
  registration_.set_locked(attached.slot, here.generation());
  return Registered::now;
}

// A descriptor may outlive its run(). Goroutines that waited for it are gone, turns and all. Plain threads are not: one may have a
// side's turn, which then stays as it is, or wait behind a goroutine that is gone, whose turn is given up for it.
Closing::User Descriptor::forget_earlier_run() {
  Presence here;
  Closing::User user = here.m() == nullptr ? Closing::User::thread : Closing::User::goroutine;
  std::uint64_t generation = registration_.generation();
  if (generation == 0 || generation == here.generation() || here.generation() == 0) return user;
  bool give_up_turn[2] = {false, false};
  Side* const sides[2] = {&reader_, &writer_};
  {
    std::lock_guard hold(lock_);
    if (registration_.generation() != generation) return user;
    closing_.forget_goroutines();
    for (int i = 0; i < 2; ++i) {
      bool is_orphaned = sides[i]->run_of_holder == generation;
      if (sides[i]->threads == 0) {
        new (&sides[i]->turn) Mutex;
      } else if (is_orphaned) {
        give_up_turn[i] = true;
      } else {
        continue;
      }
      sides[i]->run_of_holder = 0;
      sides[i]->drained = false;
    }
    registration_.forget_locked();
  }
  for (int i = 0; i < 2; ++i) {
    if (give_up_turn[i]) sides[i]->turn.unlock();
  }
  return user;
}

void Descriptor::count_thread(Side& side, int change) {
  std::lock_guard hold(lock_);
  side.threads += change;
}

void Descriptor::give_number_back() {
  {
    Presence here;
    if (Slot* slot = slot_of(here)) sched::runtime->network.detach(fd_, slot);
  }
  if (kind_ != Kind::borrowed) ::close(fd_);
  closing_.gone();
}

// ---- waking

// The registration's lock: whoever registers after this looks again at what was said before it.
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

// ---- turns

namespace {

[[noreturn]] void throw_error(std::errc error, const char* what) {
  throw std::system_error(std::make_error_code(error), std::string("magpie: ") + what);
}

}  // namespace

Descriptor::Turn::Turn(Descriptor& descriptor, Side& side, const char* what)
    : descriptor_(descriptor), side_(side), what_(what), user_(descriptor.forget_earlier_run()) {
  if (!descriptor.closing_.enter(user_)) throw_error(std::errc::operation_canceled, what);
  if (user_ == Closing::User::thread) [[unlikely]] {
    descriptor.count_thread(side, 1);
    side.turn.lock();
  } else {
    side.turn.lock();
    side.run_of_holder = sched::runtime->generation;
  }
}

Descriptor::Turn::~Turn() {
  side_.run_of_holder = 0;
  side_.turn.unlock();
  if (user_ == Closing::User::thread) [[unlikely]]
    descriptor_.count_thread(side_, -1);
  if (descriptor_.closing_.leave(user_)) [[unlikely]]
    descriptor_.give_number_back();
}

void Descriptor::Turn::fail(int error) const {
  throw std::system_error(error, std::generic_category(), std::string("magpie: ") + what_);
}

// False: the last read left nothing behind and nothing has happened since: the attempt would be in vain.
bool Descriptor::Turn::prepare() {
  bool has_slot = false, always_try = false;
  {
    Presence here;
    if (Slot* slot = descriptor_.slot_of(here)) {
      has_slot = true;
      // Written down before anything throws: the next one to try knows of it from here alone.
      if ((slot->*side_.readiness).forget()) side_.drained = false;
      always_try = slot->always_try.load(base::relaxed);
    }
  }
  if (descriptor_.is_closed()) throw_error(std::errc::operation_canceled, what_);
  if (side_.deadline.has_passed()) throw_error(std::errc::timed_out, what_);
  bool in_vain = has_slot && side_.drained && !always_try;
  if (!in_vain) side_.drained = false;
  return !in_vain;
}

void Descriptor::Turn::note_result(std::size_t count, std::size_t wanted) {
  side_.drained = descriptor_.kind_ == Kind::stream && count != 0 && count < wanted;
}

void Descriptor::Turn::wait() {
  int error;
  Registered registered = sleep_unless_new(error);
  if (registered == Registered::no_runtime) {
    throw std::logic_error(std::string("magpie: ") + what_ +
                           ": no runtime runs; wait for descriptors inside magpie::run()");
  }
  if (error != 0) fail(error);
  if (registered == Registered::now) {
    for (Side* side : {&descriptor_.reader_, &descriptor_.writer_}) side->deadline.arm_if_set();
  }
}

// After the registration the caller tries again before it sleeps: see Descriptor::wake().
Descriptor::Registered Descriptor::Turn::sleep_unless_new(int& error) {
  struct Wait {
    Presence here;
    poll::Readiness* readiness = nullptr;
    Waiter waiter;
  } wait;
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
            if (waits) sched::runtime->network.is_awaited(*sched::runtime);
            self.here.leave();
          }
          return waits;
        },
        &wait);
  }
  return registered;
}

}  // namespace magpie::io
