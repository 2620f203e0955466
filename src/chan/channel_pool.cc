#include "chan/channel_pool.h"

#include <pthread.h>

#include <new>
#include <utility>

#include "base/fence.h"
#include "base/guard.h"
#include "base/lock.h"
#include "base/thread_end.h"
#include "chan/channel.h"

namespace magpie::chan {
namespace {

constexpr std::size_t kAtHand = 64;  // of a thread, at most
constexpr std::size_t kBatch = 32;   // moved between a thread and the others at a time

struct FreeList {
  Channel* first = nullptr;
  std::size_t count = 0;

  void push(Channel* channel) {
    channel->next_free = first;
    first = channel;
    ++count;
  }
  Channel* pop() {
    Channel* channel = first;
    first = channel->next_free;
    --count;
    return channel;
  }
};

base::Lock lock;
FreeList shared MAGPIE_GUARDED_BY(lock);

// The child of a fork finds the lock free and the list whole. base/per_process.h says why it is
// registered here.
[[maybe_unused]] const int pool_at_forks = pthread_atfork(
    []() MAGPIE_ACQUIRES(lock) { lock.lock(); }, []() MAGPIE_RELEASES(lock) { lock.unlock(); },
    []() MAGPIE_RELEASES(lock) { lock.unlock(); });

void move_batch(FreeList& from, FreeList& to) {
  for (std::size_t i = 0; i < kBatch && from.count != 0; ++i) to.push(from.pop());
}

struct AtHand {
  FreeList free;
  bool is_given_back = false;  // when the thread ends
};

// Used only inside functions that do not switch stacks, so its address is that of the right thread.
constinit thread_local AtHand at_hand;

// Other destructors may make and drop channels after that: these channels are given back in turn.
void give_back_at_end(AtHand& mine) {
  if (std::exchange(mine.is_given_back, true)) return;
  base::at_thread_end(
      [](void* its) {
        auto& ended = *static_cast<AtHand*>(its);
        ended.is_given_back = false;
        base::Guard hold(lock);
        while (ended.free.count != 0) shared.push(ended.free.pop());
      },
      &mine);
}

[[gnu::noinline]] void refill(AtHand& at) {
  give_back_at_end(at);
  FreeList& mine = at.free;
  {
    base::Guard hold(lock);
    move_batch(shared, mine);
  }
  if (mine.count != 0) return;
  base::prepare_fences();  // before the first lock of the first channel is used
  auto* fresh = static_cast<Channel*>(
      ::operator new (kBatch * sizeof(Channel), std::align_val_t{alignof(Channel)}));
  for (std::size_t i = 0; i < kBatch; ++i) mine.push(new (fresh + i) Channel);
}

[[gnu::noinline]] void give_batch(FreeList& mine) {
  base::Guard hold(lock);
  move_batch(mine, shared);
}

}  // namespace

[[gnu::noinline]] Channel* take_channel() {
  AtHand& mine = at_hand;
  if (mine.free.count == 0) refill(mine);
  return mine.free.pop();
}

[[gnu::noinline]] void give_channel(Channel* channel) noexcept {
  AtHand& mine = at_hand;
  if (!mine.is_given_back) [[unlikely]]
    give_back_at_end(mine);
  mine.free.push(channel);
  if (mine.free.count > kAtHand) give_batch(mine.free);
}

}  // namespace magpie::chan
