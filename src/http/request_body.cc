// request_body.cc: the body of a request, read as the handler asks for it.
//
// Bytes with a length are counted, and go straight from the connection to the handler's memory if they are many. Chunks go
// through the input buffer and the parser. A peer that sends less than 4 KiB in the time for a body is too slow:
// the time starts anew with each 4 KiB only.
#include <algorithm>
#include <cstring>
#include <stdexcept>

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

}  // namespace

bool RequestState::begin_body(std::uint64_t limit) {
  const Head& head = this->head();
  body_at_ = parser_.head_bytes();
  body_taken_ = 0;
  body_limit_ = limit;
  body_due_ns_ = 0;
  body_credit_ = 0;
  body_left_ = head.content_length.value_or(0);
  body_ = head.chunked ? Body::chunked : body_left_ > 0 ? Body::length : Body::read;
  continue_awaited_ = head.expects_continue && head.version >= 11 && body_ != Body::read &&
                      input.size() == body_at_;  // whoever has begun to send does not wait
  return body_left_ <= limit;
}

void RequestState::fail(int status) {
  body_ = Body::failed;
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
    body_due_ns_ = connection_->core().watchman().due_after(Phase::body);
  }
  std::size_t n;
  try {
    n = connection_->receive_body(into, body_due_ns_);
  } catch (...) {
    body_ = Body::failed;
    throw;
  }
  if (n == 0) fail(400);  // it ended in the middle
  body_credit_ += n;
  return n;
}

void RequestState::fill(std::size_t least) { input.filled(receive(input.room(least))); }

std::size_t RequestState::read_length(std::span<char> into) {
  into = into.first(static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), body_left_)));
  std::size_t n;
  if (input.size() == body_at_) {
    if (into.size() >= kBodyRoom) {
      n = receive(into);
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
    if (decoded.progress == Parser::Progress::refused) fail(parser_.refusal());
    if (body_taken_ > body_limit_) fail(413);
    if (decoded.progress == Parser::Progress::complete) body_ = Body::read;
    if (decoded.given > 0 || body_ == Body::read) return decoded.given;
    // A chunk's header or the trailer is not whole.
    if (input.size() - body_at_ >= connection_->core().options().max_header_bytes) fail(400);
    fill(kBodyRoom);
  }
}

std::size_t RequestState::read_more(std::span<char> into) {
  if (body_ == Body::read || into.empty()) return 0;
  if (body_ == Body::failed) throw StatusError(400);
  say_continue();
  return body_ == Body::length ? read_length(into) : read_chunks(into);
}

std::size_t RequestState::read(std::span<char> into) {
  if (read_whole_) throw std::logic_error("magpie: Request::read() after body()");
  read_in_parts_ = true;
  return read_more(into);
}

const std::string& RequestState::body() {
  if (read_whole_) return whole_;
  if (read_in_parts_) throw std::logic_error("magpie: Request::body() after read()");
  read_whole_ = true;
  // Memory grows with what comes, not with what was announced.
  std::size_t size = 0;
  while (body_ != Body::read) {
    std::size_t wanted = body_ == Body::length ? static_cast<std::size_t>(std::min<std::uint64_t>(
                                                     body_left_, std::max(kFirstPart, size)))
                                               : std::max<std::size_t>(kBodyRoom * 2, size);
    whole_.resize(size + wanted);
    std::size_t n = 0;
    try {
      n = read_more({whole_.data() + size, wanted});
    } catch (...) {
      whole_.clear();
      throw;
    }
    size += n;
  }
  whole_.resize(size);
  return whole_;
}

bool RequestState::worth_draining() const {
  if (body_ == Body::read) return true;
  if (body_ == Body::failed || continue_awaited_) return false;
  return body_ == Body::chunked || body_left_ <= kDrainAtMost;
}

bool RequestState::drain() {
  char away[4096];
  std::uint64_t drained = 0;
  try {
    while (body_ != Body::read) {
      drained += read_more(away);
      if (drained > kDrainAtMost) return false;
    }
  } catch (const StatusError&) {
    return false;
  }
  return true;
}

}  // namespace magpie::http
