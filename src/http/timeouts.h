// timeouts.h: ends the waits of connections that take too long.
//
// A busy connection changes what it waits for several times per request. Timers for that would cost
// more than the rest. So each connection has a StateClock, in which it notes what it does and until
// when. One goroutine per server, that of Timeouts, looks at all of them now and then. To end a
// wait it moves the stream's deadline into the past: the connection's own goroutine wakes up with
// errc::timed_out and does what is right, such as to answer 408. A wait ends up to two looks late.
//
// A handler that works for long, and has asked for its request's context, learns from it that the
// client has left: the goroutine of Timeouts asks the system.
//
// At the limit of memory for bodies, Timeouts ends the slowest bodies as if their time were up.
//
// At the limit of connections, Timeouts asks the connections that have been silent for longest to
// end. At a shutdown it asks all silent ones, but not at once if they have just been answered or
// have just come: a client that does not know of the shutdown may have sent a request. A connection
// that is asked to end first looks whether bytes have come (Connection::receive_more).
//
// Noting and looking are under the connection's mutex, so a moved deadline belongs to the state
// that was seen. The next state removes it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include <magpie/cond_var.h>
#include <magpie/context.h>
#include <magpie/mutex.h>
#include <magpie/net/stream.h>

namespace magpie::http {

enum class ConnectionState : std::uint8_t {
  busy,       // a handler runs: as long as it likes
  idle,       // between requests, with its buffers
  dormant,    // between requests, without
  fresh,      // nothing has come since the connection began
  head,       // part of a header has come
  body,       // a handler waits for more of the body
  writing,    // until the system takes the bytes
  lingering,  // all is said; the peer may still send
};

struct StateTimes {
  std::int64_t ns[8];  // how long each state may last, by ConnectionState
  std::int64_t of(ConnectionState state) const { return ns[static_cast<std::size_t>(state)]; }
};

// Of the steady clock, as the system last noted it: some milliseconds old, and cheap.
std::int64_t rough_now_ns() noexcept;
// When a time that begins then, by that clock, is over.
std::int64_t due_in(std::int64_t rough_ns, std::int64_t time_ns) noexcept;

class Timeouts;

class StateClock {
 public:
  // Has the timeouts look at it from now on.
  StateClock(Timeouts& timeouts, net::Stream& stream);
  ~StateClock();
  StateClock(const StateClock&) = delete;
  StateClock& operator=(const StateClock&) = delete;

  // Says what the connection does from now on, for at most the time of that state.
  void enter(ConnectionState state);
  // The same until a given time.
  void enter_until(ConnectionState state, std::int64_t due_ns);
  // The same for a caller that knows the time, by detail::steady_now_ns().
  void enter_until(ConnectionState state, std::int64_t due_ns, std::int64_t now_ns);

  // From now on, until forget_context(), the context is cancelled when the peer has gone, at the
  // next look.
  void cancel_if_peer_leaves(const Context& context);
  void forget_context();

  // The server shuts down, or needs the room: an idle connection has to end.
  bool has_to_end() const;

  // How much memory its body has now.
  void note_body_memory(std::size_t bytes);

 private:
  friend class Timeouts;
  void look(std::int64_t now_ns);
  // The server shuts down: a silent connection has little time left.
  void hasten_locked(std::int64_t now_ns);
  // How urgently it should go if room is needed; the smallest goes first. None: it may stay.
  std::optional<std::int64_t> rank_locked(std::int64_t now_ns) const;
  // A body that has memory and comes slowly: since when it has brought less than its due.
  std::optional<std::int64_t> slow_since_locked(std::int64_t now_ns) const;
  // The context to cancel, if the peer has gone.
  std::optional<Context> take_context_of_departed();
  void end_wait_locked();

  Timeouts& timeouts_;
  net::Stream& stream_;

  // guarded by the timeouts's mutex_
  StateClock* next_ = nullptr;
  StateClock* previous_ = nullptr;

  mutable Mutex mutex_;
  // guarded by mutex_
  ConnectionState state_ = ConnectionState::busy;
  bool ended_ = false;   // a deadline of the stream lies in the past, by us
  bool to_end_ = false;  // asked by evict() or drain() in this state
  std::size_t body_memory_ = 0;
  std::int64_t due_ns_;
  // When the state began, if it is a silent one. By the steady clock: the rough one stands still
  // for the time of hundreds of requests, and the idlest connection would be any of them.
  std::int64_t since_ns_ = 0;
  std::optional<Context> context_;  // to cancel if the peer leaves
};

class Timeouts : public std::enable_shared_from_this<Timeouts> {
 public:
  Timeouts(const StateTimes& times, std::chrono::nanoseconds look_every)
      : times_(times), look_every_(look_every) {}

  std::int64_t time_of(ConnectionState state) const { return times_.of(state); }
  // When a state that begins now is over.
  std::int64_t due_after(ConnectionState state) const;
  std::size_t count() const;
  // Ends the waits of connections that ask nothing, also of connections to come.
  void drain();
  bool draining() const { return draining_.load(std::memory_order_acquire); }
  // Closes all streams.
  void cut_off();
  // Asks up to `at_most` connections to end, to make room, and never more than 64. First come
  // connections that have never sent a whole header and have been silent for a second, and
  // connections that linger although all is said. Then come connections between requests. Among
  // equals the most silent goes first.
  void evict(std::size_t at_most);
  // Ends the waits for up to `at_most` bodies, and never more than 64, that have memory and have
  // brought less than their due for a second. The slowest end first, as if their time were up.
  // Returns how many end, with those that end anyway.
  std::size_t end_slow_bodies(std::size_t at_most);
  // Blocks until no connection is left. False: time was up.
  bool wait_until_empty(detail::DeadlineNs deadline);
  // The same, until the end of the grace that others may bring forward meanwhile.
  bool wait_for_grace();
  // The earliest counts.
  void end_grace_at(detail::DeadlineNs deadline);

 private:
  friend class StateClock;
  void add(StateClock& connection);
  void remove(StateClock& connection);
  void walk();
  void look_for_departed(std::unique_lock<Mutex>& hold);
  bool is_empty_locked() const { return count_ == 0 && !walks_; }

  const StateTimes times_;
  const std::chrono::nanoseconds look_every_;
  // Raised once. A connection reads it under its mutex when it becomes idle; drain() raises it and
  // then looks at each under its mutex: one of the two sees the other. atomic, published: the
  // mutexes order it
  std::atomic<bool> draining_{false};

  mutable Mutex mutex_;
  CondVar changed_;  // there is none left
  // guarded by mutex_
  StateClock* first_ = nullptr;  // the newest
  StateClock* last_ = nullptr;
  StateClock* next_to_ask_ = nullptr;  // of the look for departed peers that is under way
  std::size_t count_ = 0;
  bool walks_ = false;
  detail::DeadlineNs grace_end_ = detail::kNoDeadline;
};

}  // namespace magpie::http
