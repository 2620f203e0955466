#include <magpie/chan.h>

#include <limits>
#include <new>
#include <string>

#include "chan/channel.h"
#include "chan/channel_pool.h"
#include "sched/park.h"

namespace magpie::chan {

bool unlock_in_commit(sched::M*, sched::G*, void* object) {
  static_cast<Channel*>(*static_cast<void**>(object))->lock.unlock();
  return true;
}

namespace {

using sched::WaitReason;

// Waits at the list until a partner or close() comes. The lock is held and released.
ChanResult wait_and_unlock(Channel& channel, sched::WaitList& list, void* slot, WaitReason reason,
                           GoroutinePresence here) {
  sched::Waiter who(here.m(), &channel);
  ChanWaiter waiter;
  waiter.who = &who;
  waiter.slot = slot;
  waiter.select = nullptr;
  list.push(waiter, here);
  sched::park(reason, unlock_in_commit, who.object_word());
  return waiter.result;
}

// The same for a plain thread, which must not be inside while it blocks.
ChanResult wait_and_unlock(Channel& channel, sched::WaitList& list, void* slot,
                           Presence& presence) {
  sched::Waiter who(&channel);
  ChanWaiter waiter;
  waiter.who = &who;
  waiter.slot = slot;
  waiter.select = nullptr;
  list.push(waiter, presence);
  channel.lock.unlock();
  presence.end();
  who.block_thread();
  return waiter.result;
}

[[gnu::noinline]] ChanResult send_from_thread(Channel& channel, void* value) {
  Presence presence;
  channel.lock.lock();
  Step step = channel.send_locked(value, presence);
  if (step.result == ChanResult::refused)
    return wait_and_unlock(channel, channel.senders, value, presence);
  channel.lock.unlock();
  return step.finish();
}

// Refused: as receive_inside().
[[gnu::noinline]] ChanResult receive_from_thread(Channel& channel, void* slot) {
  Presence presence;
  channel.lock.lock();
  Step step = channel.receive_locked(slot, presence);
  if (step.result == ChanResult::refused && channel.watch == nullptr)
    return wait_and_unlock(channel, channel.receivers, slot, presence);
  channel.lock.unlock();
  return step.finish();
}

[[gnu::always_inline]] inline ChanResult send_inside(Channel& channel, void* value, sched::M* m) {
  GoroutinePresence here(m);
  channel.lock.lock();
  Step step = channel.send_locked(value, here);
  if (step.result == ChanResult::refused)
    return wait_and_unlock(channel, channel.senders, value, WaitReason::chan_send, here);
  channel.lock.unlock();
  return step.finish();
}

// Refused: the channel has a watch, and the caller has to wait with it.
[[gnu::always_inline]] inline ChanResult receive_inside(Channel& channel, void* slot, sched::M* m) {
  GoroutinePresence here(m);
  channel.lock.lock();
  Step step = channel.receive_locked(slot, here);
  if (step.result == ChanResult::refused && channel.watch == nullptr)
    return wait_and_unlock(channel, channel.receivers, slot, WaitReason::chan_receive, here);
  channel.lock.unlock();
  return step.finish();
}

[[gnu::noinline]] ChanResult send_slow(Channel& channel, void* value) {
  sched::Entry entry;
  return entry.m() == nullptr ? send_from_thread(channel, value)
                              : send_inside(channel, value, entry.m());
}

[[gnu::noinline]] ChanResult receive_slow(Channel& channel, void* slot) {
  ChanResult result;
  {
    sched::Entry entry;
    result = entry.m() == nullptr ? receive_from_thread(channel, slot)
                                  : receive_inside(channel, slot, entry.m());
  }
  return result == ChanResult::refused ? receive_watched(channel, slot, {}) : result;
}

// A goroutine that tries again and again, without ever getting inside, gives way here.
void give_way_if_wanted() noexcept {
  if (sched::M* m = sched::current_m(); m != nullptr && !m->grip.is_undisturbed()) [[unlikely]] {
    sched::Entry gives_way;
  }
}

// False: it was closed.
bool close_and_wake(Channel& channel) {
  Presence presence;
  channel.lock.lock();
  if (channel.state.closed()) {
    channel.lock.unlock();
    return false;
  }
  channel.state.close();
  ChanWaiter* waiter = channel.take_all(channel.senders, presence, nullptr);
  waiter = channel.take_all(channel.receivers, presence, waiter);
  channel.lock.unlock();
  while (waiter != nullptr) {
    auto* next = static_cast<ChanWaiter*>(waiter->next);  // a woken waiter's record may be gone
    waiter->who->wake();
    waiter = next;
  }
  return true;
}

[[noreturn, gnu::noinline]] void wait_for_ever(WaitReason reason) {
  sched::Waiter who(nullptr);
  for (;;)
    who.wait(
        reason, [](sched::Waiter&, void*) { return true; }, nullptr);
}

std::byte* allocate_ring(const detail::ElementKind& kind, std::size_t capacity) {
  if (kind.size == 0 || capacity == 0) return nullptr;
  if (capacity > static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max()) / kind.size) {
    throw std::length_error("magpie: Chan of capacity " + std::to_string(capacity) +
                            ": more than the address space holds");
  }
  return static_cast<std::byte*>(
      ::operator new (capacity* kind.size, std::align_val_t{kind.alignment}));
}

void destroy_elements(Channel& channel) {
  if (channel.kind->destroy == nullptr) return;
  std::size_t end = channel.state.capacity() * channel.step();
  std::size_t at = channel.receive_at;
  for (std::size_t left = channel.state.count(); left != 0; --left) {
    channel.kind->destroy(channel.ring + at);
    at += channel.step();
    if (at == end) at = 0;
  }
}

}  // namespace
}  // namespace magpie::chan

namespace magpie::detail {

using namespace chan;

ChanCore* make_channel(const ElementKind& kind, std::size_t capacity) {
  std::byte* ring = allocate_ring(kind, capacity);
  Channel* channel;
  try {
    channel = take_channel();
  } catch (...) {
    ::operator delete (ring, std::align_val_t{kind.alignment});
    throw;
  }
  channel->references.store(1, std::memory_order_relaxed);  // relaxed: nobody else knows it yet
  channel->kind = &kind;
  channel->ring = ring;
  channel->watch = nullptr;
  channel->receive_at = channel->send_at = 0;
  channel->state.open(capacity);
  return channel;
}

void set_watch(ChanCore* core, std::unique_ptr<ChanWatch> watch) noexcept {
  channel_of(core)->watch = watch.release();
}

void destroy_channel(ChanCore* core) noexcept {
  Channel* channel = channel_of(core);
  destroy_elements(*channel);
  delete channel->watch;
  if (channel->ring != nullptr)
    ::operator delete (channel->ring, std::align_val_t{channel->kind->alignment});
  channel->senders.reset();
  channel->receivers.reset();
  give_channel(channel);
}

ChanResult send(ChanCore* core, void* value) {
  if (core == nullptr) [[unlikely]]
    wait_for_ever(WaitReason::nil_chan_send);
  Channel& channel = *channel_of(core);
  sched::M* m = sched::current_m();
  if (!sched::try_enter_runtime(m)) [[unlikely]]
    return send_slow(channel, value);
  ChanResult result = send_inside(channel, value, m);
  sched::leave_runtime();
  return result;
}

ChanResult receive(ChanCore* core, void* slot) {
  if (core == nullptr) [[unlikely]]
    wait_for_ever(WaitReason::nil_chan_receive);
  Channel& channel = *channel_of(core);
  sched::M* m = sched::current_m();
  if (!sched::try_enter_runtime(m)) [[unlikely]]
    return receive_slow(channel, slot);
  ChanResult result = receive_inside(channel, slot, m);
  sched::leave_runtime();
  if (result == ChanResult::refused) [[unlikely]]
    return receive_watched(channel, slot, {});
  return result;
}

bool refuses_send(const ChanCore* core) noexcept {
  if (core != nullptr && !channel_of(core)->state.refuses_send(channel_of(core)->receivers))
    return false;
  give_way_if_wanted();
  return true;
}

ChanResult try_send(ChanCore* core, void* value) {
  if (refuses_send(core)) return ChanResult::refused;
  Channel& channel = *channel_of(core);
  if (channel.state.is_closed()) return ChanResult::closed;
  Presence presence;
  channel.lock.lock();
  Step step = channel.send_locked(value, presence);
  channel.lock.unlock();
  return step.finish();
}

ChanResult try_receive(ChanCore* core, void* slot) {
  if (core == nullptr || channel_of(core)->state.refuses_receive(channel_of(core)->senders)) {
    give_way_if_wanted();
    return ChanResult::refused;
  }
  Channel& channel = *channel_of(core);
  if (channel.state.is_drained()) return ChanResult::closed;
  Presence presence;
  channel.lock.lock();
  Step step = channel.receive_locked(slot, presence);
  channel.lock.unlock();
  return step.finish();
}

bool try_close(ChanCore* core) noexcept {
  return core != nullptr && close_and_wake(*channel_of(core));
}

void close(ChanCore* core) {
  if (core == nullptr) throw std::logic_error("magpie: close() of the nil channel");
  if (!try_close(core)) throw ClosedChannel("magpie: close() of a closed channel");
}

std::size_t size(const ChanCore* core) noexcept {
  return core == nullptr ? 0 : channel_of(core)->state.size();
}
std::size_t capacity(const ChanCore* core) noexcept {
  return core == nullptr ? 0 : channel_of(core)->state.capacity();
}
bool is_closed(const ChanCore* core) noexcept {
  return core != nullptr && channel_of(core)->state.is_closed();
}

void throw_sent_on_closed() { throw ClosedChannel("magpie: send on a closed channel"); }
void throw_received_from_closed() {
  throw ClosedChannel(
      "magpie: select() received from a closed channel, and the handler takes a value only");
}

}  // namespace magpie::detail
