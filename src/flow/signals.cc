// signals.cc: from the kernel to the channels that asked.
//
//   the handler, on any thread:    notes the kind in `pending`, and wakes the courier
//   the courier, a plain thread:   takes what is pending, sends it to each channel that wants it
//
// The handler does nothing but two atomic steps and a futex call, whatever it interrupted. The
// courier is no thread of a runtime, so it is there between runs too, and while all Ps compute. It
// lets in just the signals that are wanted: also in programs that block signals in all their
// threads.
//
// No loss    A channel has room for one of each kind. What was sent to it last, as many as it
//            holds, is in it: if the kind is among those, the signal is the same one; if not, there
//            is room.
// At the end A signal that no channel wants does what it did before: the handler calls the
//            former one; if that is the default, the courier sends the signal once more after that
//            was put back. So it is received, or has its usual effect.
// Dispositions  are set under the mutex. The handler sets none: it may be late, and a channel that
//            wants the signal may have come since it looked.
// fork()     The forking thread blocks all of them until the child has the former dispositions
//            back: a signal to the child waits in the kernel, and then has its usual effect there.
// Deadlocks  The courier is counted among the library's threads, and says whether anybody waits for
//            it (sched/rest/deadlock.h).
#include <magpie/signals.h>

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <deque>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "base/atomic.h"
#include "base/event.h"
#include "base/immortal.h"
#include "chan/channel.h"
#include "sched/current.h"
#include "sched/presence.h"
#include "sched/visit.h"

namespace magpie::detail {

// A set of signals: bit n - 1 is signal n.
using SignalSet = std::uint64_t;

struct SignalSubscription {
  explicit SignalSubscription(SignalSet set, Chan<int> to) : wanted(set), channel(std::move(to)) {}

  // fixed
  const SignalSet wanted;
  const Chan<int> channel;

  // guarded by the registry's mutex
  std::deque<int> sent;  // the last ones, at most as many as the channel has room for

  bool is_awaited() const {
    return !static_cast<const chan::Channel*>(ChanAccess::core(channel))->receivers.looks_empty();
  }
  void deliver(int signal);
};

}  // namespace magpie::detail

namespace magpie::flow {
namespace {

using detail::SignalSet;
using detail::SignalSubscription;

constexpr int kMost = 64;
constexpr SignalSet bit_of(int signal) { return SignalSet{1} << (signal - 1); }

template <class F>
void for_each(SignalSet set, F f) {
  for (; set != 0; set &= set - 1) f(std::countr_zero(set) + 1);
}

struct Registry {
  // atomic, published: by the handler, taken by the courier
  base::Atomic<SignalSet> pending{0};
  // atomic, written under mutex: for the handler. What it releases is `former`
  base::Atomic<SignalSet> wanted{0};
  base::Event changed;  // the courier sleeps here

  // Nobody calls the runtime with it: a goroutine that did could go on on another thread.
  std::mutex mutex;
  // guarded by mutex
  std::vector<SignalSubscription*> subscriptions;
  bool has_keeper = false;

  // Written under mutex while the signal is not wanted, read by the handler then.
  struct sigaction former[kMost + 1] = {};
};
constinit base::Immortal<Registry> only_registry;  // signals come until the process has ended
Registry& registry() { return only_registry.value; }

// ---- the handler

// False: it did what the system does, which is not for a handler to do.
bool do_as_before(int signal, siginfo_t* info, void* context) {
  const struct sigaction& former = registry().former[signal];
  if ((former.sa_flags & SA_SIGINFO) != 0) {
    former.sa_sigaction(signal, info, context);
  } else if (former.sa_handler == SIG_DFL) {
    return false;
  } else if (former.sa_handler != SIG_IGN) {
    former.sa_handler(signal);
  }
  return true;
}

void on_signal(int signal, siginfo_t* info, void* context) {
  Registry& all = registry();
  // acquire: with the release in stop_catching()
  if ((all.wanted.load(base::acquire) & bit_of(signal)) == 0 && do_as_before(signal, info, context))
    return;
  int saved_errno = errno;
  all.pending.fetch_or(bit_of(signal), base::release);
  all.changed.set();
  errno = saved_errno;
}

bool is_ours(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == on_signal;
}

// With the registry's mutex.
void start_catching(int signal) {
  Registry& all = registry();
  struct sigaction now = {};
  sigaction(signal, nullptr, &now);
  if (!is_ours(now)) all.former[signal] = now;  // else it could not be put back the last time
  all.wanted.fetch_or(bit_of(signal), base::release);
  struct sigaction action = {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigfillset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

// With the registry's mutex, or in the child of a fork. A handler of somebody else, who came later,
// stays.
void put_former_back(int signal) {
  struct sigaction now = {};
  sigaction(signal, nullptr, &now);
  if (is_ours(now)) sigaction(signal, &registry().former[signal], nullptr);
}

// With the registry's mutex.
void stop_catching(int signal) {
  Registry& all = registry();
  put_former_back(signal);
  all.wanted.fetch_and(~bit_of(signal), base::release);  // with the handler's acquire
}

// ---- the courier

// With the registry's mutex. Somebody else may have put our handler back after the last one who
// wanted the signal had ended: it would send it here again.
void let_it_have_its_effect(int signal) {
  put_former_back(signal);
  kill(getpid(), signal);
}

void deliver_pending() {
  Registry& all = registry();
  std::lock_guard hold(all.mutex);
  for_each(all.pending.exchange(0, base::acquire), [&](int signal) {  // with the handler's release
    if ((all.wanted.load(base::relaxed) & bit_of(signal)) == 0)       // relaxed: the mutex is held
      return let_it_have_its_effect(signal);
    for (SignalSubscription* one : all.subscriptions) {
      if ((one->wanted & bit_of(signal)) != 0) one->deliver(signal);
    }
  });
}

void let_in_what_is_wanted() {
  sigset_t blocked;
  sigfillset(&blocked);
  for_each(registry().wanted.load(base::acquire), [&](int one) { sigdelset(&blocked, one); });
  pthread_sigmask(SIG_SETMASK, &blocked, nullptr);
}

void* deliver_signals(void*) {
  pthread_setname_np(pthread_self(), "magpie-signals");
  sched::visit_unnoted();
  for (;;) {
    let_in_what_is_wanted();
    registry().changed.wait();
    deliver_pending();
    sched::note_library_thread_has_acted();
  }
  return nullptr;
}

// Asked when all goroutines wait. A holder of the mutex is about to do something.
bool is_awaited() {
  Registry& all = registry();
  std::unique_lock hold(all.mutex, std::try_to_lock);
  return !hold || all.pending.load(base::acquire) != 0 ||
         std::any_of(all.subscriptions.begin(), all.subscriptions.end(),
                     [](const SignalSubscription* one) { return one->is_awaited(); });
}

// ---- forks

// 0: there is none. Called in the middle of a fork() too, where other handlers hold locks. So a
// goroutine does not enter the runtime: without a P it would wait there, and never go on if the
// runtime ended. Its thread keeps the runtime there.
int preempting_signal() {
  bool is_goroutine = sched::current_m() != nullptr;
  if (!is_goroutine && !sched::begin_visit()) return 0;
  const Options& options = sched::current_options();
  int signal = options.preempt ? options.preempt_signal : 0;
  if (!is_goroutine) sched::end_visit();
  return signal;
}

bool can_be_had(int signal) {
  switch (signal) {
    case SIGKILL:
    case SIGSTOP:
    case SIGSEGV:
    case SIGBUS:
    case SIGFPE:
    case SIGILL:
    case SIGTRAP:
    case SIGSYS:
    case SIGURG:
      return false;
  }
  if (signal > SIGSYS && signal < SIGRTMIN) return false;  // the C library's own
  return signal >= 1 && signal <= std::min(SIGRTMAX, kMost);
}

// What the thread that forks has blocked for that time, in addition to what it had.
thread_local SignalSet held_back = 0;

// All that anybody may come to want meanwhile: the registry's mutex is not taken, as handlers of
// others run between this and the fork.
void hold_signals_back() {
  SignalSet candidates = 0;
  int preempting = preempting_signal();  // left alone: the runtime sees to it in the child
  sigset_t blocked, before;
  sigemptyset(&blocked);
  for (int signal = 1; signal <= kMost; ++signal) {
    if (!can_be_had(signal) || signal == preempting) continue;
    sigaddset(&blocked, signal);
    candidates |= bit_of(signal);
  }
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  held_back = 0;
  for_each(candidates, [&](int signal) {
    if (sigismember(&before, signal) == 0) held_back |= bit_of(signal);
  });
}

void let_signals_in() {
  sigset_t held;
  sigemptyset(&held);
  for_each(held_back, [&](int signal) { sigaddset(&held, signal); });
  pthread_sigmask(SIG_UNBLOCK, &held, nullptr);
}

void forget_in_child() {
  Registry& all = registry();
  for_each(all.wanted.load(base::relaxed), put_former_back);  // relaxed: there is one thread
  sched::set_library_thread(nullptr);
  new (&all) Registry;  // the mutex may be locked, and the lists in disorder
  let_signals_in();
}

// While the program is loaded (base/per_process.h says why). No memory for it: a child must exec.
[[maybe_unused]] const int at_forks =
    pthread_atfork(hold_signals_back, let_signals_in, forget_in_child);

// ---- subscriptions

// With the registry's mutex.
void start_keeper() {
  Registry& all = registry();
  if (all.has_keeper) return;

  // Born with everything blocked: a signal that somebody waits for by sigwait() must not find it.
  sigset_t everything, before;
  sigfillset(&everything);
  pthread_sigmask(SIG_SETMASK, &everything, &before);
  pthread_t courier;
  int error = pthread_create(&courier, nullptr, deliver_signals, nullptr);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0)
    throw std::system_error(error, std::generic_category(), "magpie: a thread for Signals");
  pthread_detach(courier);
  all.has_keeper = true;
  sched::set_library_thread(is_awaited);
}

SignalSet checked(std::span<const int> signals) {
  SignalSet set = 0;
  int preempting = preempting_signal();
  for (int signal : signals) {
    if (!can_be_had(signal) || signal == preempting) {
      throw std::invalid_argument("magpie: Signals: signal " + std::to_string(signal) +
                                  " cannot be received: the kernel, a fault or the runtime "
                                  "needs it, or it is none");
    }
    set |= bit_of(signal);
  }
  if (set == 0) throw std::invalid_argument("magpie: Signals: at least one signal is needed");
  return set;
}

void subscribe(SignalSubscription& subscription) {
  Registry& all = registry();
  std::lock_guard hold(all.mutex);
  all.subscriptions.reserve(all.subscriptions.size() + 1);
  start_keeper();
  all.subscriptions.push_back(&subscription);
  for_each(subscription.wanted & ~all.wanted.load(base::relaxed), start_catching);
  all.changed.set();
}

void unsubscribe(SignalSubscription& subscription) {
  Registry& all = registry();
  std::lock_guard hold(all.mutex);
  auto place = std::find(all.subscriptions.begin(), all.subscriptions.end(), &subscription);
  if (place == all.subscriptions.end()) return;  // of the parent of this process
  all.subscriptions.erase(place);
  SignalSet others = 0;
  for (SignalSubscription* one : all.subscriptions) others |= one->wanted;
  for_each(subscription.wanted & ~others, stop_catching);
  all.changed.set();  // the courier blocks them, and sends on what is pending
}

}  // namespace
}  // namespace magpie::flow

namespace magpie {

// With the registry's mutex, by the courier.
void detail::SignalSubscription::deliver(int signal) {
  // Others only receive: what was sent last is in the channel, as many as it holds.
  std::size_t held = std::min(channel.size(), sent.size());
  if (std::find(sent.end() - static_cast<std::ptrdiff_t>(held), sent.end(), signal) != sent.end())
    return;
  try {
    if (!channel.try_send(int{signal})) return;  // somebody else sends to it,
  } catch (const ClosedChannel&) {
    return;  // or has closed it
  }
  if (sent.size() == channel.capacity()) sent.pop_front();
  sent.push_back(signal);
}

Signals::Signals(std::span<const int> signals) : channel_(Chan<int>::nil()) {
  detail::SignalSet set = flow::checked(signals);
  channel_ = Chan<int>(static_cast<std::size_t>(std::popcount(set)));
  subscription_ = std::make_unique<detail::SignalSubscription>(set, channel_);
  flow::subscribe(*subscription_);
}

Signals::Signals(Signals&&) noexcept = default;

Signals& Signals::operator=(Signals&& other) noexcept {
  if (this == &other) return *this;
  end();
  channel_ = std::move(other.channel_);
  subscription_ = std::move(other.subscription_);
  return *this;
}

Signals::~Signals() { end(); }

void Signals::end() noexcept {
  if (subscription_ == nullptr) return;
  flow::unsubscribe(*subscription_);
  if (!channel_.closed()) channel_.close();
  subscription_.reset();
}

}  // namespace magpie
