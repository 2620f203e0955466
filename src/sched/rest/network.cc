#include "sched/rest/network.h"

#include <span>
#include <utility>

#include "base/clock.h"
#include "base/fence.h"
#include "base/guard.h"
#include "base/probe.h"
#include "sched/core/queues.h"
#include "sched/run/runtime.h"
#include "sched/run/tracing.h"
#include "sched/taking/hand_off.h"
#include "sched/waiter.h"

namespace magpie::sched {
namespace {

constexpr std::size_t kEventsAtOnce = 128;

// While all Ps have enough to do.
constexpr std::int64_t kOverdueNs = 100'000;
// While they do not even come to look: sysmon's patience.
constexpr std::int64_t kLongOverdueNs = 1'000'000;

[[gnu::always_inline]] inline void become_runnable(G* g) {
  g->move(GState::waiting, GState::runnable);
  MAGPIE_PROBE(ready, g->id);
}

}  // namespace

// Goroutines that became ready, in the order of their events.
struct Network::Batch {
  Batch() = default;
  ~Batch() {
    if (delivered_by != nullptr) delivered_by->delivering_.fetch_sub(1, base::release);
  }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  Network* delivered_by = nullptr;  // null: there are no events
  G* ready[2 * kEventsAtOnce];      // a reader and a writer for each event
  std::size_t count = 0;

  void add(void* record) {
    if (record == nullptr) return;
    if (G* g = static_cast<Waiter*>(record)->wake_thread_or_take_goroutine()) ready[count++] = g;
  }
};

Network::Attached Network::attach(int fd) {
  {
    base::Guard hold(lock_);
    if (!open_) {
      if (int error = poller_.open()) return {nullptr, error};
      open_ = true;
    }
  }
  poll::Slot* slot = slots_.take();
  if (slot == nullptr) return {nullptr, ENOMEM};
  if (int error = poller_.add(fd, poll::Tag::of(*slot))) {
    slots_.give(slot);
    return {nullptr, error};
  }
  attached_.fetch_add(1, base::release);
  return {slot, 0};
}

void Network::detach(int fd, poll::Slot* slot) {
  attached_.fetch_sub(1, base::relaxed);
  poller_.remove(fd);
  slots_.give(slot);
}

void Network::want_events() {
  // [poll-role] between what the caller did and this read; other side: before_second_look()
  base::light_fence();
  if (!role_.somebody_sleeps()) wake_searcher(nullptr);
}

void Network::deliver(poll::Slot& slot, std::uint32_t events, Batch& batch) {
  constexpr std::uint32_t kEnd = EPOLLRDHUP | EPOLLHUP | EPOLLERR;
  if ((events & (EPOLLPRI | kEnd)) != 0) slot.always_try.store(true, base::relaxed);
  if ((events & (EPOLLIN | EPOLLPRI | kEnd)) != 0) batch.add(slot.read.set());
  if ((events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0) batch.add(slot.write.set());
}

void Network::ask(Batch& batch, std::int64_t until_ns, std::size_t most_events) {
  epoll_event events[kEventsAtOnce];
  std::size_t count = poller_.wait(std::span(events).first(most_events), until_ns);
  if (count == 0) return;
  batch.delivered_by = this;
  delivering_.fetch_add(1, base::relaxed);  // relaxed: set() releases it
  for (std::size_t i = 0; i < count; ++i) {
    if (poll::Slot* slot = slots_.find(poll::Tag::of(events[i].data.u64)))
      deliver(*slot, events[i].events, batch);
  }
}

// For m, which holds a P. False: somebody else asks, or nobody became ready.
bool Network::try_ask(Batch& batch, M* m, std::size_t most_events) {
  if (runtime->chaos.one_in(4) || !role_.try_take(Role::asks)) return false;
  ask(batch, poll::Poller::kAtOnce, most_events);
  asked_ns_.store(base::now_ns(), base::relaxed);
  role_.give_back();
  m->p->counters.polls.increment();
  m->p->counters.polled.add(batch.count);
  if (traced()) trace_p(m->p, Kind::poll, batch.count);
  for (std::size_t i = 0; i < batch.count; ++i) {
    become_runnable(batch.ready[i]);
    if (traced()) trace_ready(m, batch.ready[i], Place::ring, Source::network);
  }
  return batch.count != 0;
}

G* Network::poll(M* m) {
  Batch batch;
  if (!in_use() || !try_ask(batch, m, kEventsAtOnce)) return nullptr;
  for (std::size_t i = 1; i < batch.count; ++i) put_last(m, batch.ready[i]);
  if (batch.count > 1) wake_searcher(m);
  return batch.ready[0];
}

void Network::poll_if_overdue(M* m) {
  if (!in_use() || base::now_ns() - asked_ns_.load(base::relaxed) < kOverdueNs) return;
  std::size_t most_events = m->p->inbox.room() / 2;  // each may wake a reader and a writer
  Batch batch;
  if (most_events == 0 || !try_ask(batch, m, most_events)) return;
  put_in_inbox(m, {batch.ready, batch.count});
}

void Network::put_in_global(Batch& batch) {
  for (std::size_t i = 0; i < batch.count; ++i) {
    become_runnable(batch.ready[i]);
    if (traced()) trace_ready(nullptr, batch.ready[i], Place::urgent, Source::network);
    runtime->global.push_urgent(batch.ready[i]);
  }
}

Network::Slept Network::sleep_in_poller(M* m, std::int64_t until_ns) {
  if (!in_use() || !role_.try_take(Role::sleeps)) return Slept::not_there;
  {
    base::Guard hold(runtime->idle.lock());
    if (!m->rest.listed) {  // it was handed a P
      role_.give_back();
      return Slept::not_there;
    }
    runtime->idle.move_to_end_locked(m);
    m->rest.in_poller = true;
  }
  runtime->chaos.disturb();
  Batch batch;
  ask(batch, until_ns, kEventsAtOnce);
  runtime->chaos.disturb();
  asked_ns_.store(base::now_ns(), base::relaxed);
  role_.give_back();

  P* p = nullptr;
  {
    base::Guard hold(runtime->idle.lock());
    if (m->rest.listed) {
      m->rest.in_poller = false;
      if (batch.count != 0 && !runtime->world.stopping())
        p = runtime->idle.take_p_locked(m->rest.last_p);
      if (p != nullptr) runtime->idle.remove_locked(m);
    }
  }
  if (p == nullptr) {
    put_in_global(batch);
    if (batch.count != 0) {
      wake_searcher(nullptr);
      runtime->sysmon.look_soon();  // all Ps may be held, by loops
    }
    return Slept::without_p;
  }
  begin_with(m, p);
  p->counters.polls.increment();
  p->counters.polled.add(batch.count);
  if (traced()) trace_p(p, Kind::poll, batch.count);
  for (std::size_t i = 0; i < batch.count; ++i) {
    become_runnable(batch.ready[i]);
    if (traced()) trace_ready(m, batch.ready[i], Place::ring, Source::network);
    put_last(m, batch.ready[i]);
  }
  // For one, sysmon sees to the role that this M leaves.
  if (batch.count > 1) wake_searcher(m);
  return Slept::with_p;
}

std::int64_t Network::look_after(std::int64_t now_ns) {
  if (!in_use() || !role_.is_free()) return kNever;
  std::int64_t due = asked_ns_.load(base::relaxed) + kLongOverdueNs;
  if (now_ns < due) return due;
  bool nobody_else_asks = runtime->search.view().idle == 0 || no_thread_comes();
  if (nobody_else_asks && role_.try_take(Role::asks)) {
    Batch batch;
    ask(batch, poll::Poller::kAtOnce, kEventsAtOnce);
    asked_ns_.store(now_ns, base::relaxed);
    role_.give_back();
    put_in_global(batch);
  }
  // A P that is idle now, or went idle meanwhile: somebody else asks.
  wake_searcher(nullptr);
  return now_ns + kLongOverdueNs;
}

bool Network::is_waited_for() const {
  bool waits = slots_.any([](const poll::Slot& slot) {
    return slot.read.somebody_waits() || slot.write.somebody_waits();
  });
  return waits || delivering_.load(base::acquire) != 0;
}

void Network::release_threads() {
  slots_.any([](poll::Slot& slot) {
    for (poll::Readiness* side : {&slot.read, &slot.write}) {
      if (auto* waiter = static_cast<Waiter*>(side->set());
          waiter != nullptr && waiter->is_thread())
        waiter->wake();
    }
    return false;
  });
}

}  // namespace magpie::sched
