// limited.cc: sends and receives that wait no longer than until a time, or while a context lives.
//
// As those of chan.cc, but the waiter can be taken off the list again: by its timer, or by the
// canceller of its context ([cancel], sched/cancel_list.h). Partners take it off under the same
// lock. So a value that has moved was sent, and a value that has not moved is still its sender's.
//
// The done() channel of a context closes at the context's deadline. As a rule a timer sees to that.
// But its run() may have ended, and a plain thread waits outside of any run(). So such a channel
// has a watch, which knows whether this receiver has to look after the deadline itself.
#include <magpie/detail/chan_core.h>
#include <magpie/time.h>

#include "base/clock.h"
#include "chan/channel.h"
#include "sched/cancel_source.h"
#include "sched/presence.h"

namespace magpie::chan {
namespace {

using detail::WaitLimit;
using sched::Waiter;
using sched::WaitReason;

// On the stack of the goroutine or thread that waits.
struct ChanSleeper : ChanWaiter {
  ChanSleeper(Channel& its, sched::WaitList& at, void* value_or_room)
      : waiter(&its), channel(its), list(at) {
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
bool withdraw_operation(Waiter&, void* sleeper) {
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
                           const WaitLimit& limit, Presence& presence) {
  ChanSleeper self(channel, list, slot);
  list.push(self, presence);
  presence.end();
  bool woken = limit.source == nullptr
                   ? self.waiter.wait_until(limit.deadline, reason, unlock_channel,
                                            withdraw_operation, &self)
                   : limit.source->wait(self.waiter, limit.deadline, reason, unlock_channel,
                                        withdraw_operation, &self);
  return woken ? self.result : ChanResult::refused;
}

// The nil channel serves nobody.
void wait_in_vain(const WaitLimit& limit, WaitReason reason) {
  if (limit.source != nullptr) {
    (void)limit.source->sleep(limit.deadline, reason);
  } else {
    detail::sleep_until(limit.deadline);
  }
}

bool is_unlimited(const WaitLimit& limit) {
  return limit.source == nullptr && limit.deadline == detail::kNoDeadline;
}

// A limit that leaves no time at all.
bool is_over(const WaitLimit& limit) {
  return limit.deadline != detail::kNoDeadline && limit.deadline <= base::now_ns();
}

ChanResult receive_within(Channel& channel, void* slot, const WaitLimit& limit) {
  Presence presence;
  channel.lock.lock();
  Step step = channel.receive_locked(slot, presence);
  if (step.result == ChanResult::refused) {
    return wait_and_unlock(channel, channel.receivers, slot, WaitReason::chan_receive, limit,
                           presence);
  }
  channel.lock.unlock();
  return step.finish();
}

}  // namespace

ChanResult receive_watched(Channel& channel, void* slot, const WaitLimit& limit) {
  for (;;) {
    detail::DeadlineNs watched = channel.watch->deadline();
    bool watches = watched < limit.deadline;
    WaitLimit both{watches ? watched : limit.deadline, limit.source};
    ChanResult result = receive_within(channel, slot, both);
    if (result != ChanResult::refused || !watches) return result;
    if (limit.source != nullptr && limit.source->is_over()) return result;
    channel.watch->notice();
  }
}

}  // namespace magpie::chan

namespace magpie::detail {

using namespace chan;

ChanResult send(ChanCore* core, void* value, const WaitLimit& limit) {
  if (is_unlimited(limit)) return send(core, value);
  if (is_over(limit)) return try_send(core, value);
  if (core == nullptr) {
    wait_in_vain(limit, WaitReason::nil_chan_send);
    return ChanResult::refused;
  }
  Channel& channel = *channel_of(core);
  Presence presence;
  channel.lock.lock();
  Step step = channel.send_locked(value, presence);
  if (step.result == ChanResult::refused) {
    return wait_and_unlock(channel, channel.senders, value, WaitReason::chan_send, limit, presence);
  }
  channel.lock.unlock();
  return step.finish();
}

ChanResult receive(ChanCore* core, void* slot, const WaitLimit& limit) {
  if (is_unlimited(limit)) return receive(core, slot);
  if (is_over(limit)) return try_receive(core, slot);
  if (core == nullptr) {
    wait_in_vain(limit, WaitReason::nil_chan_receive);
    return ChanResult::refused;
  }
  Channel& channel = *channel_of(core);
  return channel.watch == nullptr ? receive_within(channel, slot, limit)
                                  : receive_watched(channel, slot, limit);
}

}  // namespace magpie::detail
