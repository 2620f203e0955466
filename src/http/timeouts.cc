#include "http/timeouts.h"

#include <poll.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <utility>

#include <magpie/go.h>

namespace magpie::http {

namespace {

constexpr std::int64_t kNever = detail::kNoDeadline;
constexpr std::int64_t kRoughNs = 10'000'000;  // how old rough_now_ns() may be
constexpr net::Stream::TimePoint kLongPast;

constexpr std::int64_t kMillisecond = 1'000'000;
// At a shutdown, for a client that may have sent a request: after its last answer, and after it has
// connected.
constexpr std::int64_t kLastRequestNs = 200 * kMillisecond;
constexpr std::int64_t kFirstRequestNs = 500 * kMillisecond;
constexpr std::chrono::milliseconds kLookWhileDraining(10);
// A connection without a whole header is silent after this time, and could be for want of others
// after that.
constexpr std::int64_t kSilentNs = 1000 * kMillisecond;
constexpr std::int64_t kMaybeSilentNs = 100 * kMillisecond;
// A body is slow after this time without what is due (ServerOptions::body_timeout).
constexpr std::int64_t kSlowBodyNs = 1000 * kMillisecond;
// The system is asked about this many connections before others may have the list.
constexpr int kAskAtOnce = 1024;

// States in which the server waits for the peer to begin, or to go on with, a header.
constexpr bool is_silent(ConnectionState state) {
  return state == ConnectionState::idle || state == ConnectionState::dormant ||
         state == ConnectionState::fresh || state == ConnectionState::head;
}

// States in which it counts how long ago they began.
constexpr bool is_ranked(ConnectionState state) {
  return is_silent(state) || state == ConnectionState::lingering;
}

bool peer_has_left(int socket) {
  pollfd asked{.fd = socket, .events = POLLRDHUP, .revents = 0};
  return ::poll(&asked, 1, 0) > 0;
}

}  // namespace

std::int64_t rough_now_ns() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

std::int64_t due_in(std::int64_t rough_ns, std::int64_t time_ns) noexcept {
  return detail::sum_of_ns(rough_ns + kRoughNs, time_ns);
}

StateClock::StateClock(Timeouts& timeouts, net::Stream& stream)
    : timeouts_(timeouts), stream_(stream), due_ns_(kNever) {
  timeouts_.add(*this);
}

StateClock::~StateClock() { timeouts_.remove(*this); }

std::int64_t Timeouts::due_after(ConnectionState state) const {
  return due_in(rough_now_ns(), times_.of(state));
}

void StateClock::enter(ConnectionState state) {
  const std::int64_t time = timeouts_.times_.of(state);
  enter_until(state, time == kNever ? kNever : due_in(rough_now_ns(), time));
}

void StateClock::enter_until(ConnectionState state, std::int64_t due_ns) {
  enter_until(state, due_ns, is_ranked(state) ? detail::steady_now_ns() : 0);
}

void StateClock::enter_until(ConnectionState state, std::int64_t due_ns, std::int64_t now_ns) {
  std::lock_guard hold(mutex_);
  if (ended_) {
    ended_ = false;
    stream_.set_deadline(net::Stream::TimePoint::max());
  }
  // A dormant connection has been idle since it fell idle.
  if (state != state_ && state != ConnectionState::dormant) since_ns_ = now_ns;
  state_ = state;
  to_end_ = false;
  due_ns_ = due_ns;
  if (is_silent(state) && timeouts_.draining()) hasten_locked(now_ns);
}

bool StateClock::has_to_end() const {
  std::lock_guard hold(mutex_);
  return to_end_ || timeouts_.draining();
}

// Both directions: TLS may have to write in order to read.
void StateClock::end_wait_locked() {
  if (ended_) return;
  ended_ = true;
  stream_.set_deadline(kLongPast);
}

void StateClock::hasten_locked(std::int64_t now_ns) {
  if (state_ == ConnectionState::idle) {
    due_ns_ = std::min(due_ns_, since_ns_ + kLastRequestNs);
  } else if (state_ == ConnectionState::fresh) {
    due_ns_ = std::min(due_ns_, since_ns_ + kFirstRequestNs);
  } else if (state_ == ConnectionState::dormant) {
    due_ns_ = now_ns;
  } else {
    return;  // a header that has begun has its time
  }
  to_end_ = true;
  if (due_ns_ <= now_ns) end_wait_locked();
}

std::optional<std::int64_t> StateClock::rank_locked(std::int64_t now_ns) const {
  // Ranks of three classes: times, moved apart by more than a clock can tell.
  constexpr std::int64_t kClass = std::int64_t{1} << 61;
  const std::int64_t silence = now_ns - since_ns_;
  switch (state_) {
    case ConnectionState::fresh:
    case ConnectionState::head:
      if (silence >= kSilentNs) return since_ns_ - kClass;
      if (silence >= kMaybeSilentNs && state_ == ConnectionState::fresh) return since_ns_ + kClass;
      return std::nullopt;
    case ConnectionState::lingering:
      if (silence >= kMaybeSilentNs) return since_ns_ - kClass;
      return std::nullopt;
    case ConnectionState::idle:
    case ConnectionState::dormant:
      return since_ns_;
    default:
      return std::nullopt;
  }
}

std::optional<std::int64_t> StateClock::slow_since_locked(std::int64_t now_ns) const {
  const std::int64_t time = timeouts_.times_.of(ConnectionState::body);
  if (state_ != ConnectionState::body || body_memory_ == 0 || due_ns_ == kNever)
    return std::nullopt;
  const std::int64_t since_ns = due_ns_ - time;
  if (now_ns - since_ns < kSlowBodyNs) return std::nullopt;
  return since_ns;
}

void StateClock::note_body_memory(std::size_t bytes) {
  std::lock_guard hold(mutex_);
  body_memory_ = bytes;
}

void StateClock::look(std::int64_t now_ns) {
  std::lock_guard hold(mutex_);
  if (due_ns_ <= now_ns) end_wait_locked();
}

void StateClock::cancel_if_peer_leaves(const Context& context) {
  std::lock_guard hold(mutex_);
  context_ = context;
}

void StateClock::forget_context() {
  std::lock_guard hold(mutex_);
  context_.reset();
}

std::optional<Context> StateClock::take_context_of_departed() {
  std::lock_guard hold(mutex_);
  if (!context_ || !peer_has_left(stream_.native_handle())) return std::nullopt;
  return std::exchange(context_, std::nullopt);
}

std::size_t Timeouts::count() const {
  std::lock_guard hold(mutex_);
  return count_;
}

void Timeouts::add(StateClock& connection) {
  std::lock_guard hold(mutex_);
  if (!walks_) {
    go([self = shared_from_this()] { self->walk(); });  // before the list is touched: it may throw
    walks_ = true;
  }
  connection.next_ = first_;
  (first_ != nullptr ? first_->previous_ : last_) = &connection;
  first_ = &connection;
  ++count_;
}

void Timeouts::remove(StateClock& connection) {
  std::lock_guard hold(mutex_);
  if (next_to_ask_ == &connection) next_to_ask_ = connection.next_;
  (connection.next_ != nullptr ? connection.next_->previous_ : last_) = connection.previous_;
  (connection.previous_ != nullptr ? connection.previous_->next_ : first_) = connection.next_;
  if (--count_ == 0) changed_.notify_all();
}

void Timeouts::walk() {
  std::unique_lock hold(mutex_);
  while (count_ > 0) {
    const bool drained = draining();
    (void)changed_.wait_for(
        hold,
        drained ? std::min<std::chrono::nanoseconds>(look_every_, kLookWhileDraining) : look_every_,
        [&] { return count_ == 0 || draining() != drained; });
    const std::int64_t now = detail::steady_now_ns();
    for (StateClock* c = first_; c != nullptr; c = c->next_) c->look(now);
    look_for_departed(hold);
  }
  walks_ = false;
  changed_.notify_all();
}

// Cancelling runs callbacks: not under our mutex. Each connection is asked
// once per look, however many have gone and whatever comes meanwhile: remove() keeps the place.
void Timeouts::look_for_departed(std::unique_lock<Mutex>& hold) {
  std::array<std::optional<Context>, 64> departed;
  for (next_to_ask_ = first_; next_to_ask_ != nullptr;) {
    std::size_t count = 0;
    for (int asked = 0; asked < kAskAtOnce && count < departed.size(); ++asked) {
      if (next_to_ask_ == nullptr) break;
      StateClock* c = std::exchange(next_to_ask_, next_to_ask_->next_);
      if ((departed[count] = c->take_context_of_departed())) ++count;
    }
    hold.unlock();
    for (std::size_t i = 0; i < count; ++i) {
      departed[i]->cancel();
      departed[i].reset();
    }
    hold.lock();
  }
}

void Timeouts::drain() {
  draining_.store(true, std::memory_order_release);
  std::lock_guard hold(mutex_);
  const std::int64_t now = detail::steady_now_ns();
  for (StateClock* c = first_; c != nullptr; c = c->next_) {
    std::lock_guard hold_connection(c->mutex_);
    c->hasten_locked(now);
  }
  changed_.notify_all();
}

namespace {

// The connections with the smallest ranks, of those that are offered.
class Smallest {
 public:
  explicit Smallest(std::size_t at_most) : at_most_(std::min(at_most, found_.size())) {}
  void offer(std::int64_t rank, StateClock* connection) {
    if (at_most_ == 0) return;
    if (count_ == at_most_) {
      if (found_[0].rank <= rank) return;
      drop_largest();
    }
    found_[count_++] = {rank, connection};
    std::push_heap(found_.begin(), found_.begin() + count_);
  }
  // One less.
  void lower() {
    if (at_most_ == 0) return;
    --at_most_;
    if (count_ > at_most_) drop_largest();
  }
  template <class F>
  void for_each(F f) {
    for (std::size_t i = 0; i < count_; ++i) f(*found_[i].connection);
  }

 private:
  struct Candidate {
    std::int64_t rank;
    StateClock* connection;
    bool operator<(const Candidate& other) const { return rank < other.rank; }
  };
  void drop_largest() { std::pop_heap(found_.begin(), found_.begin() + count_--); }

  std::array<Candidate, 64> found_;  // a heap: the connection that may stay rather is on top
  std::size_t at_most_;
  std::size_t count_ = 0;
};

}  // namespace

void Timeouts::evict(std::size_t at_most) {
  Smallest chosen(at_most);
  std::lock_guard hold(mutex_);
  const std::int64_t now = detail::steady_now_ns();
  for (StateClock* c = last_; c != nullptr; c = c->previous_) {
    std::lock_guard hold_connection(c->mutex_);
    if (c->to_end_) {
      chosen.lower();  // it is on its way
    } else if (std::optional<std::int64_t> rank = c->rank_locked(now)) {
      chosen.offer(*rank, c);
    }
  }
  chosen.for_each([now](StateClock& c) {
    std::lock_guard hold_connection(c.mutex_);
    if (!c.rank_locked(now)) return;  // it has just been heard of
    c.to_end_ = true;
    c.end_wait_locked();
  });
}

std::size_t Timeouts::end_slow_bodies(std::size_t at_most) {
  Smallest chosen(at_most);
  std::size_t ending = 0;
  std::lock_guard hold(mutex_);
  const std::int64_t now = detail::steady_now_ns();
  for (StateClock* c = last_; c != nullptr; c = c->previous_) {
    std::lock_guard hold_connection(c->mutex_);
    std::optional<std::int64_t> since = c->slow_since_locked(now);
    if (!since) continue;
    if (c->ended_) {
      ++ending;
      chosen.lower();
    } else {
      chosen.offer(*since, c);
    }
  }
  chosen.for_each([&](StateClock& c) {
    std::lock_guard hold_connection(c.mutex_);
    if (!c.slow_since_locked(now)) return;
    ++ending;
    c.end_wait_locked();
  });
  return ending;
}

void Timeouts::cut_off() {
  std::lock_guard hold(mutex_);
  for (StateClock* c = first_; c != nullptr; c = c->next_) c->stream_.close();
}

bool Timeouts::wait_until_empty(detail::DeadlineNs deadline) {
  std::unique_lock hold(mutex_);
  return changed_.wait_until(hold, detail::steady_time(deadline),
                             [this] { return is_empty_locked(); });
}

bool Timeouts::wait_for_grace() {
  std::unique_lock hold(mutex_);
  for (;;) {
    const detail::DeadlineNs end = grace_end_;
    (void)changed_.wait_until(hold, detail::steady_time(end),
                              [&] { return is_empty_locked() || grace_end_ != end; });
    if (is_empty_locked()) return true;
    if (grace_end_ == end) return false;
  }
}

void Timeouts::end_grace_at(detail::DeadlineNs deadline) {
  std::lock_guard hold(mutex_);
  if (deadline >= grace_end_) return;
  grace_end_ = deadline;
  changed_.notify_all();
}

}  // namespace magpie::http
