// request_body.cc: the body of a request, read as the handler asks for it.
//
// Bytes with a length are counted, and go straight from the connection to the handler's memory if
// they are many. Chunks go through the input buffer and the parser. A peer that sends less than 4
// KiB in the time for a body is too slow: the time starts anew with each 4 KiB only. For a peer
// that keeps just ahead of that, an Allowance limits the whole.
#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string_view>

#include <magpie/http/error.h>

#include "http/connection.h"
#include "http/request_state.h"
#include "http/server_core.h"
#include "http/text.h"

namespace magpie::http {

namespace {

constexpr std::size_t kBodyRoom = 2048;
constexpr std::uint64_t kCredit = 4096;
constexpr std::size_t kFirstPart = 64 * 1024;
constexpr std::size_t kUncounted =
    4096;  // bodies up to that size are part of what a connection costs

// What the parser has left begins with the header of a chunk, maybe after the line end of the one
// before. If that header is whole, with its line end, it is the last chunk's, and the trailer is
// not whole.
bool is_trailer(std::string_view left) {
  if (left.starts_with("\r\n")) left.remove_prefix(2);
  return left.find("\r\n") != std::string_view::npos;
}

}  // namespace

bool RequestState::begin_body(std::uint64_t limit) {
  const Head& head = this->head();
  body_at_ = parser_.head_bytes();
  body_taken_ = body_wire_ = 0;
  body_time_.begin();
  body_limit_ = limit;
  body_due_ns_ = 0;
  body_credit_ = 0;
  body_left_ = head.content_length.value_or(0);
  body_ = head.chunked ? Body::chunked : body_left_ > 0 ? Body::length : Body::read;
  continue_awaited_ = head.expects_continue && head.version >= 11 && body_ != Body::read &&
                      input.size() == body_at_;  // a peer that has begun to send does not wait
  return body_left_ <= limit;
}

void RequestState::fail(int status) {
  body_ = Body::failed;
  failure_ = status;
  throw StatusError(status);
}

void RequestState::say_continue() {
  if (!continue_awaited_) return;
  continue_awaited_ = false;
  connection_->send_interim("HTTP/1.1 100 Continue\r\n\r\n");
}

std::size_t RequestState::receive(std::span<char> into) {
  if (body_due_ns_ == 0 || body_credit_ >= kCredit) {
    body_credit_ = 0;
    body_due_ns_ = connection_->core().timeouts().due_after(ConnectionState::body);
  }
  const ServerCore& core = connection_->core();
  const std::int64_t began = rough_now_ns();
  const std::int64_t left =
      body_time_.left_ns(core.body_time_ns(), core.options().min_bytes_per_second);
  if (left == 0) fail(408);
  std::size_t n;
  try {
    n = connection_->receive_body(into, std::min(body_due_ns_, due_in(began, left)));
  } catch (const StatusError& error) {
    fail(error.status());
  } catch (...) {
    body_ = Body::failed;
    throw;
  }
  if (n == 0) fail(400);  // it ended in the middle
  body_credit_ += n;
  body_time_.add_bytes(n);
  body_time_.add_wait(rough_now_ns() - began);
  return n;
}

void RequestState::fill(std::size_t least) { input.filled(receive(input.room(least))); }

std::size_t RequestState::read_length(std::span<char> into) {
  into = into.first(static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), body_left_)));
  std::size_t n;
  if (input.size() == body_at_) {
    if (into.size() >= kBodyRoom) {
      n = receive(into);
      body_wire_ += n;
      body_left_ -= n;
      if (body_left_ == 0) body_ = Body::read;
      return n;
    }
    fill(kBodyRoom);
  }
  std::string_view here = input.bytes(body_at_);
  n = std::min(here.size(), into.size());
  std::memcpy(into.data(), here.data(), n);
  input.erase(body_at_, n);
  body_wire_ += n;
  body_left_ -= n;
  if (body_left_ == 0) body_ = Body::read;
  return n;
}

std::size_t RequestState::read_chunks(std::span<char> into) {
  for (;;) {
    std::string_view here = input.bytes(body_at_);
    Parser::Decoded decoded = parser_.decode(here, into);
    input.erase(body_at_, decoded.taken);
    body_taken_ += decoded.given;
    body_wire_ += decoded.taken;
    if (body_taken_ > body_limit_) fail(413);
    if (decoded.progress == Parser::Progress::refused) {
      // What is wrong came together with good bytes, and could have come later: a handler that
      // reads a part must not depend on that. The next read says it.
      if (decoded.given == 0) fail(parser_.refusal());
      body_ = Body::failed;
      failure_ = parser_.refusal();
      return decoded.given;
    }
    if (decoded.progress == Parser::Progress::complete) body_ = Body::read;
    if (decoded.given > 0 || body_ == Body::read) return decoded.given;
    // A chunk's header or the trailer is not whole.
    if (input.size() - body_at_ >= connection_->core().options().max_header_bytes)
      fail(is_trailer(input.bytes(body_at_)) ? 431 : 400);
    fill(kBodyRoom);
  }
}

std::size_t RequestState::read_more(std::span<char> into) {
  if (body_ == Body::read || into.empty()) return 0;
  if (body_ == Body::failed) throw StatusError(failure_);
  say_continue();
  return body_ == Body::length ? read_length(into) : read_chunks(into);
}

std::size_t RequestState::read(std::span<char> into) {
  if (read_whole_) throw std::logic_error("magpie: Request::read() after body()");
  read_in_parts_ = true;
  if (!was_loaded_) return read_more(into);
  const std::size_t n = whole_.copy(into.data(), into.size(), whole_taken_);
  whole_taken_ += n;
  return n;
}

const std::string& RequestState::body() {
  if (read_in_parts_) throw std::logic_error("magpie: Request::body() after read()");
  read_whole_ = true;
  load();
  return whole_;
}

bool RequestState::may_load(std::uint64_t at_most) const {
  if (body_ == Body::length) return body_left_ <= at_most;
  return body_ == Body::chunked && body_limit_ <= at_most;
}

void RequestState::load() {
  if (was_loaded_) return;
  whole_taken_ = 0;
  // Memory grows with what comes, not with what was announced.
  std::size_t size = 0;
  try {
    while (body_ != Body::read) {
      std::size_t wanted = body_ == Body::length ? static_cast<std::size_t>(std::min<std::uint64_t>(
                                                       body_left_, std::max(kFirstPart, size)))
                                                 : std::max<std::size_t>(kBodyRoom * 2, size);
      take_body_memory(size + wanted);
      whole_.resize(size + wanted);
      size += read_more({whole_.data() + size, wanted});
    }
  } catch (...) {
    body_ = Body::failed;  // part of it is gone
    http::give_back(whole_);
    release_body_memory();  // others may wait for it while this connection lingers
    throw;
  }
  whole_.resize(size);
  was_loaded_ = true;
}

// Before the body's string grows to that size.
void RequestState::take_body_memory(std::size_t size) {
  if (size <= whole_.capacity() && whole_.capacity() <= memory_taken_) return;
  const std::size_t capacity = std::max(size, size > whole_.capacity() ? 2 * whole_.capacity() : 0);
  if (capacity <= kUncounted || capacity <= memory_taken_) return;
  ServerCore& core = connection_->core();
  const std::size_t more = capacity - memory_taken_;
  if (!core.take_body_memory(more) && !core.take_body_memory_of_slow_bodies(more)) fail(503);
  memory_taken_ = capacity;
  connection_->clock().note_body_memory(memory_taken_);
}

void RequestState::release_body_memory() {
  if (memory_taken_ == 0) return;
  connection_->core().release_body_memory(memory_taken_);
  memory_taken_ = 0;
  connection_->clock().note_body_memory(0);
}

bool RequestState::worth_draining() const {
  if (body_ == Body::read) return true;
  if (body_ == Body::failed || continue_awaited_) return false;
  return body_ == Body::chunked || body_left_ <= kDrainAtMost;
}

bool RequestState::drain() {
  char away[4096];
  const std::uint64_t before = body_wire_;
  try {
    while (body_ != Body::read) {
      (void)read_more(away);
      if (body_wire_ - before > kDrainAtMost) return false;
    }
  } catch (const StatusError&) {
    return false;
  }
  return true;
}

}  // namespace magpie::http
