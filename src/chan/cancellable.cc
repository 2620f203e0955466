// cancellable.cc: sends and receives that wait no longer than until a context is over.
//
// As those of chan.cc, but who waits can be taken off the list again: [cancel],
// sched/cancel_list.h. Partners take it off under the same lock, so a value that has moved has been
// sent, and one that has not is still its sender's.
#include <magpie/detail/chan_core.h>

#include "chan/channel.h"
#include "sched/cancel_source.h"
#include "sched/presence.h"

namespace magpie::chan {
namespace {

using sched::CancelSource;
using sched::Waiter;
using sched::WaitReason;

// On the stack of the one that waits.
struct ChanSleeper : ChanWaiter {
  ChanSleeper(Channel& its, sched::WaitList& at, void* value_or_room) : channel(its), list(at) {
    who = &waiter;
    slot = value_or_room;
    select = nullptr;
  }
  Waiter waiter;
  Channel& channel;
  sched::WaitList& list;
};

bool unlock_channel(Waiter&, void* sleeper) {
  static_cast<ChanSleeper*>(sleeper)->channel.lock.unlock();
  return true;
}

// False: too late, a partner or close() has come.
bool leave_list(Waiter&, void* sleeper) {
  auto& self = *static_cast<ChanSleeper*>(sleeper);
  Presence presence;
  self.channel.lock.lock();
  bool listed = self.list.holds(self, presence);
  if (listed) self.list.unlink(self);
  self.channel.lock.unlock();
  return listed;
}

// The lock is held and released.
ChanResult wait_and_unlock(Channel& channel, sched::WaitList& list, void* slot, WaitReason reason,
                           CancelSource& source, Presence& presence) {
  ChanSleeper self(channel, list, slot);
  list.push(self, presence);
  presence.leave();
  if (source.wait(self.waiter, sched::kNever, reason, unlock_channel, leave_list, &self))
    return self.result;
  return ChanResult::refused;
}

}  // namespace
}  // namespace magpie::chan

namespace magpie::detail {

using namespace chan;

ChanResult send(ChanCore* core, void* value, sched::CancelSource* source) {
  if (source == nullptr) return send(core, value);
  if (core == nullptr) {
    (void)source->sleep(sched::kNever, WaitReason::nil_chan_send);
    return ChanResult::refused;
  }
  Channel& channel = *channel_of(core);
  Presence presence;
  channel.lock.lock();
  Step step = channel.send_locked(value, presence);
  if (step.result == ChanResult::refused) {
    return wait_and_unlock(channel, channel.senders, value, WaitReason::chan_send, *source,
                           presence);
  }
  channel.lock.unlock();
  return step.finish();
}

ChanResult receive(ChanCore* core, void* slot, sched::CancelSource* source) {
  if (source == nullptr) return receive(core, slot);
  if (core == nullptr) {
    (void)source->sleep(sched::kNever, WaitReason::nil_chan_receive);
    return ChanResult::refused;
  }
  Channel& channel = *channel_of(core);
  Presence presence;
  channel.lock.lock();
  Step step = channel.receive_locked(slot, presence);
  if (step.result == ChanResult::refused) {
    return wait_and_unlock(channel, channel.receivers, slot, WaitReason::chan_receive, *source,
                           presence);
  }
  channel.lock.unlock();
  return step.finish();
}

}  // namespace magpie::detail
