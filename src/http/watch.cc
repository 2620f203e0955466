#include "http/watch.h"

#include <poll.h>
#include <time.h>

#include <array>
#include <limits>
#include <utility>

#include <magpie/go.h>

namespace magpie::http {

namespace {

constexpr std::int64_t kNever = detail::kNoDeadline;
constexpr std::int64_t kRoughNs = 10'000'000;  // how old rough_now_ns() may be
constexpr detail::DeadlineNs kLongPast = 1;

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

Watched::Watched(Watchman& watchman, net::Stream& stream)
    : watchman_(watchman), stream_(stream), due_ns_(kNever) {
  watchman_.add(*this);
}

Watched::~Watched() { watchman_.remove(*this); }

std::int64_t Watchman::due_after(Phase phase) const {
  std::int64_t time = times_.of(phase);
  return time == kNever ? kNever : rough_now_ns() + kRoughNs + time;
}

void Watched::enter(Phase phase) { enter_until(phase, watchman_.due_after(phase)); }

void Watched::enter_until(Phase phase, std::int64_t due_ns) {
  std::lock_guard hold(mutex_);
  if (ended_) {
    ended_ = false;
    stream_.set_read_deadline_ns(detail::kNoDeadline);
    stream_.set_write_deadline_ns(detail::kNoDeadline);
  }
  phase_ = phase;
  to_end_ = false;
  due_ns_ = due_ns;
  if ((is_idle_locked() || phase == Phase::fresh) && watchman_.draining()) end_wait_locked();
}

bool Watched::has_to_end() const {
  std::lock_guard hold(mutex_);
  return to_end_ || watchman_.draining();
}

void Watched::end_wait_locked() {
  if (ended_) return;
  ended_ = true;
  if (phase_ == Phase::writing) {
    stream_.set_write_deadline_ns(kLongPast);
  } else {
    stream_.set_read_deadline_ns(kLongPast);
  }
}

void Watched::look(std::int64_t now_ns) {
  std::lock_guard hold(mutex_);
  if (due_ns_ <= now_ns) end_wait_locked();
}

void Watched::cancel_if_peer_leaves(const Context& context) {
  std::lock_guard hold(mutex_);
  context_ = context;
}

void Watched::forget_context() {
  std::lock_guard hold(mutex_);
  context_.reset();
}

std::optional<Context> Watched::take_context_of_departed() {
  std::lock_guard hold(mutex_);
  if (!context_ || !peer_has_left(stream_.native_handle())) return std::nullopt;
  return std::exchange(context_, std::nullopt);
}

std::size_t Watchman::count() const {
  std::lock_guard hold(mutex_);
  return count_;
}

void Watchman::add(Watched& connection) {
  std::lock_guard hold(mutex_);
  connection.next_ = first_;
  (first_ != nullptr ? first_->previous_ : last_) = &connection;
  first_ = &connection;
  ++count_;
  if (walks_) return;
  walks_ = true;
  go([self = shared_from_this()] { self->walk(); });
}

void Watchman::remove(Watched& connection) {
  std::lock_guard hold(mutex_);
  (connection.next_ != nullptr ? connection.next_->previous_ : last_) = connection.previous_;
  (connection.previous_ != nullptr ? connection.previous_->next_ : first_) = connection.next_;
  if (--count_ == 0) changed_.notify_all();
}

void Watchman::walk() {
  std::unique_lock hold(mutex_);
  while (count_ > 0) {
    (void)changed_.wait_for(hold, look_every_, [this] { return count_ == 0; });
    const std::int64_t now = detail::steady_now_ns();
    for (Watched* c = first_; c != nullptr; c = c->next_) c->look(now);
    look_for_departed(hold);
  }
  walks_ = false;
  changed_.notify_all();
}

// Cancelling calls whoever has asked to hear of it: not under our mutex. More than fit wait for the next look.
void Watchman::look_for_departed(std::unique_lock<Mutex>& hold) {
  std::array<std::optional<Context>, 64> departed;
  std::size_t count = 0;
  for (Watched* c = first_; c != nullptr && count < departed.size(); c = c->next_) {
    if ((departed[count] = c->take_context_of_departed())) ++count;
  }
  if (count == 0) return;
  hold.unlock();
  for (std::size_t i = 0; i < count; ++i) departed[i]->cancel();
  hold.lock();
}

void Watchman::drain() {
  draining_.store(true, std::memory_order_release);
  end_idle(std::numeric_limits<std::size_t>::max());
}

void Watchman::end_idle(std::size_t at_most) {
  std::lock_guard hold(mutex_);
  for (Watched* c = last_; c != nullptr && at_most > 0; c = c->previous_) {
    std::lock_guard hold_connection(c->mutex_);
    // A fresh connection has a request on its way, most likely: only the end of everything is a reason.
    if (!c->is_idle_locked() && !(draining() && c->phase_ == Phase::fresh)) continue;
    c->to_end_ = true;
    c->end_wait_locked();
    --at_most;
  }
}

void Watchman::cut_off() {
  std::lock_guard hold(mutex_);
  for (Watched* c = first_; c != nullptr; c = c->next_) c->stream_.close();
}

bool Watchman::wait_until_empty(detail::DeadlineNs deadline) {
  std::unique_lock hold(mutex_);
  return changed_.wait_until(
      hold, std::chrono::steady_clock::time_point(std::chrono::nanoseconds(deadline)),
      [this] { return count_ == 0 && !walks_; });
}

}  // namespace magpie::http
