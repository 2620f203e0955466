#include "http/connection.h"

#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <magpie/detail/caught.h>
#include <magpie/http/error.h>
#include <magpie/runtime.h>

#include "http/server_core.h"
#include "http/text.h"
#include "sched/trim_stack.h"

namespace magpie::http {

namespace {

constexpr std::size_t kHeadRoom = 1024;
constexpr unsigned kStepsBetweenYields = 8;       // requests, and reads of a body
constexpr std::size_t kWriteAtOnce = 128 * 1024;  // each gets write_timeout
constexpr std::size_t kLingerBytes = 256 * 1024;

bool is_timeout(const std::system_error& error) { return error.code() == std::errc::timed_out; }

}  // namespace

Connection::Connection(ServerCore& core, std::unique_ptr<net::Stream> stream)
    : core_(core), stream_(std::move(stream)), clock_(core.timeouts(), *stream_) {}

void Connection::run() {
  try {
    serve();
  } catch (...) {
    // Reading or writing failed: the peer has gone, or is too slow, or the server is over. Or there
    // was no memory. Whatever it is, it ends this connection and no other.
    (void)detail::caught();
  }
  stream_->close();
  if (!exchange_) return;
  exchange_->in.end_context();  // if the handler's end was not reached
  core_.give_exchange(std::move(exchange_));
}

void Connection::serve() {
  exchange_ = core_.take_exchange(*this);
  for (;;) {
    exchange_->in.begin(core_.head_limits());
    switch (receive_head()) {
      case Got::end:
        return;
      case Got::refused:
        refuse(exchange_->in.refusal());
        return;
      case Got::head:
        break;
    }
    first_ = false;
    if (!answer()) {
      if (broken_) return;
      exchange_->out.flush_held();
      if (!exchange_->in.body_is_read() || exchange_->in.has_next() || bytes_are_here()) linger();
      return;
    }
    exchange_->in.finish();
    give_way();
  }
}

// If a peer's next request, or more of its body, is always there, its goroutine never waits. So
// after some steps the goroutine yields, long before its slice ends. If nothing of the peer is
// there, the goroutine will wait anyway and must not yield: the next request would find it at the
// end of the ring, behind the busy goroutines, and not among those that the network wakes.
void Connection::give_way() {
  if (++steps_since_yield_ < kStepsBetweenYields) return;
  steps_since_yield_ = 0;
  // A stream that is no socket cannot be asked.
  if (exchange_->in.has_next() || bytes_are_here() || stream_->native_handle() < 0) yield();
}

// ---- reading

Connection::Got Connection::receive_head() {
  for (;;) {
    switch (exchange_->in.parse()) {
      case Parser::Progress::complete:
        return Got::head;
      case Parser::Progress::refused:
        return Got::refused;
      case Parser::Progress::need_more:
        break;
    }
    exchange_->out.flush_held();
    if (!receive_more()) return Got::end;
  }
}

// Waits for more of a head. False: none will come.
bool Connection::receive_more() {
  Input& input = exchange_->in.input;
  // A head has its time from its first byte on, the first one from the beginning of the connection.
  const bool begun = input.size() > 0;
  if (begun || first_) {
    if (head_due_ns_ == 0) head_due_ns_ = core_.timeouts().due_after(ConnectionState::head);
    clock_.enter_until(begun ? ConnectionState::head : ConnectionState::fresh, head_due_ns_);
  } else {
    head_due_ns_ = 0;  // a line end is no head that has begun
    // One time for all of it: neither a line end nor half a record of TLS is a request.
    const std::int64_t now = detail::steady_now_ns();
    const std::int64_t rests_after = core_.timeouts().time_of(ConnectionState::idle);
    if (idle_due_ns_ == 0) idle_due_ns_ = due_in(now, core_.idle_time_ns());
    clock_.enter_until(ConnectionState::idle, std::min(due_in(now, rests_after), idle_due_ns_),
                       now);
  }
  try {
    return read_head();
  } catch (const std::system_error& error) {
    if (!is_timeout(error)) throw;
  }
  if (begun) {
    refuse(408);
    return false;
  }
  // Asked to end, or idle for long, or too slow to begin. What has come meanwhile is served: on a
  // machine that stood still, a request may have waited for us longer than we have for it.
  const bool has_to_end = clock_.has_to_end();
  if (!has_to_end && first_ && std::exchange(had_second_chance_, true)) return false;
  if (bytes_are_here()) {
    last_ = has_to_end;
    head_due_ns_ = core_.timeouts().due_after(ConnectionState::head);
    clock_.enter_until(ConnectionState::head, head_due_ns_);
    return read_head();
  }
  if (has_to_end || first_ || detail::steady_now_ns() >= idle_due_ns_) return false;
  return go_dormant();
}

// False: the end. Half a head is no request, so there is nobody to answer.
bool Connection::read_head() {
  Input& input = exchange_->in.input;
  // The rest of a head that comes byte by byte may always be there, and with TLS each byte may cost
  // dozens of new keys. Most heads come whole.
  if (input.size() > 0) yield();
  std::size_t n = stream_->read(std::as_writable_bytes(input.room(kHeadRoom)));
  input.filled(n);
  return n > 0;
}

// Bytes of the peer lie unread in the system.
bool Connection::bytes_are_here() const {
  const int socket = stream_->native_handle();
  int count = 0;
  return socket >= 0 && ::ioctl(socket, FIONREAD, &count) == 0 && count > 0;
}

// Idle for a while. Gives the buffers back and waits on. False: until the end.
bool Connection::go_dormant() {
  if (!core_.idle_connections_go_dormant()) return false;
  const bool may_skip_line = exchange_->in.may_skip_line();
  core_.give_exchange(std::move(exchange_));
  sched::trim_stack();  // a handler may have been deep
  clock_.enter_until(ConnectionState::dormant, idle_due_ns_);
  char byte = 0;
  std::size_t n = 0;
  try {
    if (stream_->native_handle() >= 0) {
      stream_->wait_readable();
    } else {
      n = stream_->read(std::as_writable_bytes(std::span(&byte, 1)));
      if (n == 0) return false;
    }
  } catch (const std::system_error& error) {
    if (!is_timeout(error)) throw;
    if (!bytes_are_here()) return false;
    last_ = clock_.has_to_end();
    clock_.enter(ConnectionState::head);
  }
  exchange_ = core_.take_exchange(*this);
  exchange_->in.begin(core_.head_limits(), may_skip_line);
  exchange_->in.input.room(kHeadRoom)[0] = byte;
  exchange_->in.input.filled(n);
  return true;
}

std::size_t Connection::receive_body(std::span<char> into, std::int64_t due_ns) {
  exchange_->out.flush_held();
  clock_.enter_until(ConnectionState::body, due_ns);
  try {
    std::size_t n = stream_->read(std::as_writable_bytes(into));
    clock_.enter(ConnectionState::busy);
    give_way();
    return n;
  } catch (const std::system_error& error) {
    if (is_timeout(error) && !exchange_->out.timer_answered()) throw StatusError(408);
    if (!is_timeout(error)) broken_ = true;  // else the timer has said all
    throw;
  }
}

// ---- writing

// A handler may go on after an error. What it writes then must not follow the part of the answer
// that is missing: the client would take the one for the other.
void Connection::throw_if_write_failed() const {
  if (write_error_) throw std::system_error(write_error_, "magpie: an earlier write has failed");
}

void Connection::send(std::span<const std::span<const std::byte>> parts) {
  throw_if_write_failed();
  std::size_t total = 0;
  for (const auto& part : parts) total += part.size();
  try {
    if (total <= kWriteAtOnce) {
      send_some(parts, total);
    } else {
      for (std::span<const std::byte> part : parts) {
        while (!part.empty()) {
          const std::span<const std::byte> some = part.first(std::min(part.size(), kWriteAtOnce));
          send_some({&some, 1}, some.size());
          part = part.subspan(some.size());
        }
      }
    }
    clock_.enter(ConnectionState::busy);
  } catch (const std::system_error& error) {
    broken_ = true;
    write_error_ = error.code();
    throw;
  } catch (...) {
    broken_ = true;
    write_error_ = std::make_error_code(std::errc::io_error);
    throw;
  }
}

// A refused peer has as long to take the answer as to read it.
std::int64_t Connection::time_to_take_ns() const {
  const std::int64_t time = core_.write_time_ns();
  return is_refused_ ? std::min(time, core_.timeouts().time_of(ConnectionState::lingering)) : time;
}

void Connection::send_some(std::span<const std::span<const std::byte>> parts, std::size_t size) {
  answer_time_.add_bytes(size);
  const std::int64_t began = rough_now_ns(), time = time_to_take_ns();
  const std::int64_t left = answer_time_.left_ns(time, core_.options().min_bytes_per_second);
  if (left == 0)
    throw std::system_error(std::make_error_code(std::errc::timed_out),
                            "magpie: the client takes its answer too slowly");
  clock_.enter_until(ConnectionState::writing, due_in(began, std::min(time, left)));
  stream_->write_parts(parts);
  answer_time_.add_wait(rough_now_ns() - began);
}

void Connection::send(std::string_view head, std::string_view body) {
  const std::span<const std::byte> parts[] = {std::as_bytes(std::span(head)),
                                              std::as_bytes(std::span(body))};
  send(std::span(parts).first(body.empty() ? 1 : 2));
}

std::string Connection::remote_address() const {
  try {
    return stream_->remote_address().to_string();
  } catch (const std::system_error&) {
    return {};  // it has gone
  }
}

std::string Connection::remote_host() const {
  try {
    return stream_->remote_address().host();
  } catch (const std::system_error&) {
    return {};
  }
}

std::optional<AddressTable::Key> Connection::remote_key() {
  if (!std::exchange(remote_key_known_, true)) remote_key_ = key_of_peer(*stream_);
  return remote_key_;
}

void* Connection::attached(const void* owner) const {
  for (const auto& [its, thing] : attached_) {
    if (its == owner) return thing.get();
  }
  return nullptr;
}

// ---- answering

bool Connection::may_keep_alive() const {
  return !last_ && !core_.timeouts().draining() && exchange_->in.worth_draining();
}

// Answers the request whose head has come. True: the connection may be used for another one.
bool Connection::answer() {
  RequestState& in = exchange_->in;
  ResponseState& out = exchange_->out;
  const Route* route = begin_request();
  // If the next request is here already, the answers may go together. But the peer must not wait
  // for a slow handler, so a route earns that by being quick.
  const bool next_is_here = in.has_next();
  const bool quick = route != nullptr && route->is_quick();
  if (!quick) out.flush_held();
  out.begin({.version = in.head().version,
             .head_only = in.method() == "HEAD",
             .keep_alive = in.head().keep_alive && early_status_ == 0,
             .hold_back = quick && next_is_here});
  const std::int64_t began = next_is_here && route != nullptr ? detail::steady_now_ns() : 0;
  call_handler();
  if (began != 0) route->note_run(detail::steady_now_ns() - began);
  if (broken_ || !out.keep_alive()) return false;
  if (in.body_is_read()) return true;
  return in.worth_draining() && in.drain();
}

// Finds the route, which may be null, and what to answer without asking its handler.
const Route* Connection::begin_request() {
  head_due_ns_ = idle_due_ns_ = 0;
  answer_time_.begin();
  clock_.enter(ConnectionState::busy);
  RequestState& in = exchange_->in;
  const int refusal = in.route(core_.router());
  const Route* route = in.match().route;
  std::uint64_t limit = core_.options().max_body_bytes;
  if (route != nullptr && route->max_body_bytes) limit = *route->max_body_bytes;
  const bool fits = in.begin_body(limit);
  early_status_ = refusal != 0 ? refusal : in.head().other_expectation ? 417 : !fits ? 413 : 0;
  return route;
}

// Runs middlewares and handler, and ends the response.
void Connection::call_handler() {
  try {
    core_.handler()(exchange_->request, exchange_->response);
    exchange_->out.finish();
  } catch (...) {
    answer_error(detail::caught());
  }
  exchange_->in.end_context();
}

void Connection::answer_error(std::exception_ptr error) {
  ResponseState& out = exchange_->out;
  if (broken_ || out.timer_answered()) {
    // The handler was told by an exception, and passed it on.
    out.end_connection();
    return;
  }
  int status = 500;
  bool wanted_so = false;
  std::string text;
  try {
    std::rethrow_exception(error);
  } catch (const StatusError& wanted) {
    wanted_so = true;
    status = wanted.status();
    text = wanted.what();
  } catch (const std::exception& other) {
    text = other.what();
  } catch (...) {
    text = "not a std::exception";
  }
  if (!wanted_so) {
    if (core_.options().on_error) {
      try {
        core_.options().on_error(exchange_->request, error);
      } catch (...) {  // has nobody to go to
      }
    } else {
      std::string line = "magpie: http: " + exchange_->request.method() + " " +
                         exchange_->request.target() + ": " + text + "\n";
      std::fputs(line.c_str(), stderr);
    }
    text.clear();
  }
  if (!out.reset()) {
    out.end_connection();  // in the middle of the body: only so the peer can tell
    if (!out.done()) broken_ = true;
    return;
  }
  if (status < 200 || status > 999) status = 500;
  try {
    if (text.empty()) text = reason_of(status);
    text += '\n';
    if (status == 400 || status == 408 || status == 413) out.end_connection();
    out.set_status(status);
    out.set_field("Content-Type", "text/plain; charset=utf-8");
    out.set_field("X-Content-Type-Options", "nosniff");  // the text may quote the request
    if (status == 429 || status == 503) out.set_field("Retry-After", "1");
    out.send(text);
  } catch (const std::system_error&) {
    out.end_connection();
  }
}

// ---- ends

// The head cannot be understood, so the connection cannot be used any more. Middlewares see it all
// the same, those that log and count above all.
void Connection::refuse(int status) {
  is_refused_ = true;
  answer_time_.begin();
  clock_.enter(ConnectionState::busy);
  exchange_->in.begin_refused();
  early_status_ = status;
  exchange_->out.begin({.version = 11,
                        .head_only = exchange_->in.method() == "HEAD",
                        .keep_alive = false,
                        .hold_back = false});
  call_handler();
  if (broken_) return;
  exchange_->out.flush_held();
  linger();
}

// Closing while bytes of the peer are unread would reset the connection and might destroy the
// answer on its way. So: say that this was all, and read until the peer has seen it.
void Connection::linger() {
  exchange_->in.input.clear();
  // The timer of timeout() may have ended all reading. It is done, and the watchman leaves a busy
  // connection alone.
  stream_->set_deadline(net::Stream::TimePoint::max());
  clock_.enter(ConnectionState::lingering);  // TLS says its farewell, which may block
  stream_->shutdown_write();
  std::span<char> away = exchange_->in.input.room(Input::kFirstCapacity);
  for (std::size_t read = 0; read < kLingerBytes;) {
    std::size_t n = stream_->read(std::as_writable_bytes(away));
    if (n == 0) return;
    read += n;
  }
}

}  // namespace magpie::http
