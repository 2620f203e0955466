#include "http/response_state.h"

#include <charconv>
#include <ctime>
#include <stdexcept>
#include <system_error>

#include <magpie/http/error.h>

#include "http/connection.h"
#include "http/text.h"

namespace magpie::http {

void ResponseState::begin(const Terms& terms) {
  terms_ = terms;
  stage_ = Stage::open;
  framing_ = Framing::none;
  keep_alive_ = terms.keep_alive;
  has_date_ = timed_ = false;
  status_ = 200;
  body_bytes_ = 0;
  announced_.reset();
  fields_.clear();
  pending_.clear();
  answerer_.store(Answerer::nobody, std::memory_order_relaxed);  // no timer yet
}

void ResponseState::need_open(const char* what) const {
  if (stage_ != Stage::open)
    throw std::logic_error(std::string("magpie: Response::") + what + "() after the head was sent");
}

void ResponseState::set_status(int code) {
  need_open("status");
  if (code < 200 || code > 999)
    throw std::invalid_argument("magpie: Response::status(" + std::to_string(code) +
                                "): 200 to 999");
  status_ = code;
}

void ResponseState::remove_field(std::string_view name) {
  for (std::size_t at = 0; at < fields_.size();) {
    std::size_t end = fields_.find('\n', at) + 1;
    std::string_view line = std::string_view(fields_).substr(at, end - at);
    if (line.size() > name.size() && line[name.size()] == ':' &&
        same_name(line.substr(0, name.size()), name)) {
      fields_.erase(at, end - at);
    } else {
      at = end;
    }
  }
}

void ResponseState::set_field(std::string_view name, std::string_view value) {
  need_open("header");
  if (!fields_.empty()) remove_field(name);
  add_field(name, value);
}

void ResponseState::add_field(std::string_view name, std::string_view value) {
  need_open("header");
  if (!is_field_name(name) || !is_field_value(value))
    throw std::invalid_argument("magpie: Response::header(): bytes that may not stand in \"" +
                                std::string(name) + "\"");
  if (same_name(name, "Transfer-Encoding"))
    throw std::invalid_argument(
        "magpie: Response::header(): Transfer-Encoding is set by the server");
  if (same_name(name, "Content-Length")) {
    std::uint64_t length = 0;
    auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), length);
    if (error != std::errc() || end != value.data() + value.size())
      throw std::invalid_argument("magpie: Response::header(): Content-Length is no number");
    announced_ = length;
    return;
  }
  if (same_name(name, "Connection")) {
    if (has_option(value, "close")) keep_alive_ = false;
    return;
  }
  if (same_name(name, "Date")) has_date_ = true;
  fields_.append(name).append(": ").append(value).append("\r\n");
}

// ---- who answers

void ResponseState::begin_answer() {
  if (!timed_) return;
  Answerer now = Answerer::nobody;
  // acq_rel: the loser sees what the winner had done before.
  if (!answerer_.compare_exchange_strong(now, Answerer::handler, std::memory_order_acq_rel) &&
      now == Answerer::timer)
    throw std::system_error(std::make_error_code(std::errc::timed_out),
                            "magpie: the request's time is up");
}

bool ResponseState::try_answer_as_timer() {
  Answerer now = Answerer::nobody;
  return answerer_.compare_exchange_strong(now, Answerer::timer, std::memory_order_acq_rel);
}

// ---- the head

void ResponseState::date(std::string& to) {
  long long now = static_cast<long long>(std::time(nullptr));
  if (now != date_second_) {
    date_.clear();
    append_date(date_, now);
    date_second_ = now;
  }
  to.append("Date: ").append(date_).append("\r\n");
}

void ResponseState::append_head(std::optional<std::uint64_t> length) {
  if (keep_alive_ && !connection_->may_keep_alive()) keep_alive_ = false;
  if (status_ == 200) {
    out_.append("HTTP/1.1 200 OK\r\n");
  } else {
    out_.append("HTTP/1.1 ");
    append_number(out_, static_cast<unsigned>(status_));
    out_.append(" ").append(reason_of(status_)).append("\r\n");
  }
  if (!has_date_) date(out_);
  out_.append(fields_);
  if (length && status_ != 204) {
    out_.append("Content-Length: ");
    append_number(out_, *length);
    out_.append("\r\n");
  }
  if (framing_ == Framing::chunked) out_.append("Transfer-Encoding: chunked\r\n");
  if (!keep_alive_) {
    out_.append("Connection: close\r\n");
  } else if (terms_.version < 11) {
    out_.append("Connection: keep-alive\r\n");
  }
  out_.append("\r\n");
}

// ---- the body

void ResponseState::put_out(std::string_view body) {
  const bool hold = terms_.hold_back && !timed_ && out_.size() + body.size() <= kHoldAtMost;
  // One part costs the system less than two, and a small body is quickly copied.
  if (hold || body.size() <= kJoinAtMost) {
    out_.append(body);
    body = {};
  }
  if (hold) return;
  connection_->send(out_, body);
  out_.clear();
}

void ResponseState::send(std::string_view body) {
  if (stage_ != Stage::open)
    throw std::logic_error("magpie: Response::send() after something was sent");
  if (!pending_.empty()) throw std::logic_error("magpie: Response::send() after write()");
  begin_answer();
  stage_ = Stage::done;
  const bool silent = terms_.head_only || has_no_body();
  framing_ = Framing::length;
  // The answer to HEAD tells the length that GET's would have. A handler may know it without making
  // the body.
  std::optional<std::uint64_t> length = body.size();
  if (terms_.head_only && body.empty() && announced_) length = announced_;
  if (status_ == 304 && body.empty()) length = announced_;
  append_head(length);
  if (silent) body = {};
  body_bytes_ = body.size();
  put_out(body);
}

void ResponseState::begin_streaming() {
  begin_answer();
  stage_ = Stage::streaming;
  if (terms_.head_only || has_no_body()) {
    framing_ = Framing::none;
  } else if (announced_) {
    framing_ = Framing::length;
  } else if (terms_.version >= 11) {
    framing_ = Framing::chunked;
  } else {
    framing_ = Framing::until_end;
    keep_alive_ = false;
  }
  append_head(announced_);
}

// Sends what is pending and more, as one chunk.
void ResponseState::send_pending(std::string_view more) {
  const std::size_t size = pending_.size() + more.size();
  if (framing_ == Framing::chunked && size > 0) {
    char digits[20];
    char* end = std::to_chars(digits, digits + sizeof digits, size, 16).ptr;
    out_.append(digits, end).append("\r\n");
  }
  auto bytes = [](std::string_view text) { return std::as_bytes(std::span(text)); };
  if (framing_ == Framing::none || size == 0) {
    if (!out_.empty()) connection_->send(out_, {});
  } else {
    const std::span<const std::byte> parts[] = {
        bytes(out_), bytes(pending_), bytes(more),
        bytes(framing_ == Framing::chunked ? std::string_view("\r\n") : std::string_view())};
    connection_->send(parts);
  }
  out_.clear();
  pending_.clear();
}

void ResponseState::write(std::string_view bytes) {
  if (stage_ == Stage::done) throw std::logic_error("magpie: Response::write() after send()");
  if (announced_ && body_bytes_ + bytes.size() > *announced_)
    throw std::logic_error("magpie: Response::write(): more than Content-Length announced");
  if (timed_ && timer_answered()) begin_answer();  // throws
  connection_->throw_if_write_failed();
  body_bytes_ += bytes.size();
  if (pending_.size() + bytes.size() <= kWriteBuffer) {
    pending_.append(bytes);
    return;
  }
  if (stage_ == Stage::open) begin_streaming();
  send_pending(bytes);
}

void ResponseState::flush() {
  connection_->throw_if_write_failed();
  if (stage_ == Stage::open) begin_streaming();
  if (stage_ == Stage::streaming) {
    send_pending({});
  } else {
    flush_held();
  }
}

void ResponseState::finish() {
  if (stage_ == Stage::done) return;
  if (stage_ == Stage::open) {
    if (announced_ && body_bytes_ < *announced_ && !terms_.head_only && !has_no_body()) {
      keep_alive_ = false;  // less than announced: only the end of the connection tells
      begin_streaming();
      send_pending({});
      stage_ = Stage::done;
      return;
    }
    begin_answer();
    stage_ = Stage::done;
    const bool silent = terms_.head_only || has_no_body();
    framing_ = Framing::length;
    std::optional<std::uint64_t> length = announced_ ? *announced_ : pending_.size();
    if (status_ == 304 && !announced_) length.reset();
    append_head(length);
    put_out(silent ? std::string_view() : std::string_view(pending_));
    pending_.clear();
    return;
  }
  if (announced_ && body_bytes_ < *announced_) keep_alive_ = false;
  if (framing_ == Framing::chunked) {
    // The last chunk goes with what is pending.
    if (pending_.empty()) {
      out_.append("0\r\n\r\n");
      put_out({});
    } else {
      char digits[20];
      char* end = std::to_chars(digits, digits + sizeof digits, pending_.size(), 16).ptr;
      out_.append(digits, end).append("\r\n");
      pending_.append("\r\n0\r\n\r\n");
      put_out(pending_);
      pending_.clear();
    }
  } else {
    send_pending({});
  }
  stage_ = Stage::done;
}

bool ResponseState::reset() {
  if (stage_ != Stage::open || (timed_ && timer_answered())) return false;
  const bool keep = keep_alive_, timed = timed_;
  status_ = 200;
  body_bytes_ = 0;
  announced_.reset();
  fields_.clear();
  pending_.clear();
  has_date_ = false;
  keep_alive_ = keep;
  timed_ = timed;
  return true;
}

void ResponseState::flush_held() {
  if (out_.empty()) return;
  connection_->send(out_, {});
  out_.clear();
}

void ResponseState::send_now(std::string_view bytes) {
  connection_->send(out_, bytes);
  out_.clear();
}

void ResponseState::forget() {
  // What a connection that broke did not take must not reach the next one's peer.
  out_.clear();
  constexpr std::size_t kKeep = 2 * kHoldAtMost;
  for (std::string* text : {&out_, &pending_, &fields_}) {
    if (text->capacity() > kKeep) give_back(*text);
  }
}

}  // namespace magpie::http
