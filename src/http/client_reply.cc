#include "http/client_reply.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <system_error>
#include <typeinfo>
#include <vector>

#include "http/text.h"

namespace magpie::http {

namespace {

constexpr std::size_t kReplyRoom = 2048;
constexpr std::size_t kUploadPart = 16 * 1024;
constexpr std::size_t kDrainAtMost = 64 * 1024;
constexpr int kMostInterim = 64;  // "100 Continue" and the like, before a reply

auto bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

bool peer_closed(const std::system_error& error) {
  return error.code() == std::errc::broken_pipe || error.code() == std::errc::connection_reset;
}

// Without what is put around it again.
std::string bare(std::string text, const std::string& ending = {}) {
  constexpr std::string_view kBeginning = "magpie: ";
  if (text.starts_with(kBeginning)) text.erase(0, kBeginning.size());
  if (!ending.empty() && text.ends_with(ending)) text.resize(text.size() - ending.size());
  return text;
}

}  // namespace

// ---- errors

void rethrow_about(const std::string& about, const Context& context) {
  try {
    throw;
  } catch (const std::system_error& error) {
    if (typeid(error) != typeid(std::system_error)) throw;  // of somebody's BodySource
    const std::error_code over = context.err();
    std::string what = "magpie: " + about;
    if (!over) what += ": " + bare(error.what(), ": " + error.code().message());
    throw std::system_error(over ? over : error.code(), what);
  } catch (const ProtocolError& error) {
    throw ProtocolError("magpie: " + about + ": " + bare(error.what()));
  }
}

void ClientReply::rethrow() const { rethrow_about(method + " " + url, context_); }

// ---- the request

// False: the server has closed the connection. What it said before that counts.
bool ClientReply::send_parts(net::Stream::Parts parts) {
  try {
    stream_->write_parts(parts);
    return true;
  } catch (const std::system_error& error) {
    if (!peer_closed(error)) throw;
    send_error_ = std::current_exception();
    may_keep = false;
    return false;
  }
}

void ClientReply::send(std::string_view head, std::string_view body) {
  const std::span<const std::byte> parts[] = {bytes(head), bytes(body)};
  (void)send_parts(std::span(parts).first(body.empty() ? 1 : 2));
}

// What reading the body throws is never taken for the server's fault, whatever it is.
void ClientReply::send(std::string_view head, BodySource& body) {
  const bool chunked = !body.size().has_value();
  std::uint64_t left = body.size().value_or(0);
  std::vector<std::byte> part(kUploadPart);
  const std::span<const std::byte> first[] = {bytes(head)};
  if (!send_parts(first)) return;
  for (;;) {
    std::size_t wanted = chunked
                             ? part.size()
                             : static_cast<std::size_t>(std::min<std::uint64_t>(left, part.size()));
    std::size_t n = wanted == 0 ? 0 : body.read(std::span(part).first(wanted));
    const std::span<const std::byte> some = std::span<const std::byte>(part).first(n);
    if (!chunked) {
      if (n == 0 && left > 0)
        throw std::invalid_argument("magpie: a BodySource was shorter than its size()");
      if (n == 0) return;
      left -= n;
      if (!send_parts({&some, 1})) return;
      continue;
    }
    char size[24];
    char* end = std::to_chars(size, size + sizeof size, n, 16).ptr;
    std::memcpy(end, "\r\n", 2);
    const std::span<const std::byte> parts[] = {
        bytes({size, static_cast<std::size_t>(end + 2 - size)}), some, bytes("\r\n")};
    if (!send_parts(parts) || n == 0) return;
  }
}

// ---- the reply

void ClientReply::receive_head(Parser::Kind kind, std::size_t max_header_bytes) {
  max_header_bytes_ = max_header_bytes;
  for (int interim = 0;; ++interim) {
    if (interim > kMostInterim)
      throw ProtocolError("magpie: the server announces a reply without end");
    parser_.begin(kind, {max_header_bytes, 1000});
    Parser::Progress progress;
    for (;;) {
      add_missing_space();
      progress = parser_.parse_head(input_.bytes());
      if (progress != Parser::Progress::need_more) break;
      std::size_t n = receive(input_.room(kReplyRoom));
      if (n == 0) {
        if (send_error_) std::rethrow_exception(send_error_);
        if (!has_heard_)
          throw std::system_error(std::make_error_code(std::errc::connection_reset),
                                  "magpie: the server closed the connection without a reply");
        throw ProtocolError("magpie: the reply ended in its header");
      }
      input_.filled(n);
    }
    if (progress == Parser::Progress::refused)
      throw ProtocolError(parser_.refusal() == 431
                              ? "magpie: the header of the reply is too large"
                              : "magpie: the reply is not HTTP/1.1 as it should be");
    if (parser_.head().status < 100)
      throw ProtocolError("magpie: the reply has a status that is none");
    if (parser_.head().status == 101)
      throw ProtocolError("magpie: the server switched protocols unasked");
    if (parser_.head().status >= 200) break;
    input_.drop(parser_.head_bytes());  // "100 Continue" and the like
  }
  const Head& head = parser_.head();
  for (const Head::Field& field : head.fields)
    headers_.add(field.name.of(input_.message()), field.value.of(input_.message()));
  input_.drop(parser_.head_bytes());
  keep_ = head.keep_alive && may_keep;
  body_left_ = head.content_length.value_or(0);
  if (!head.has_body) {
    body_ = Body::read;
  } else if (head.chunked) {
    body_ = Body::chunked;
  } else if (head.content_length) {
    body_ = Body::length;
  } else {
    body_ = Body::until_end;
  }
  if (body_ == Body::read) finish();
}

// Some servers leave out the reason, and the space before it, which the parser needs: "HTTP/1.1
// 200" and the line end.
void ClientReply::add_missing_space() {
  constexpr std::size_t kSpace = 12;
  std::string_view text = input_.bytes();
  if (text.size() < kSpace + 2 || text.substr(kSpace, 2) != "\r\n" ||
      !text.starts_with("HTTP/1.") || text[8] != ' ' || !is_digit(text[9]) || !is_digit(text[10]) ||
      !is_digit(text[11]))
    return;
  char* message = input_.room(1).data() - input_.size();
  std::memmove(message + kSpace + 1, message + kSpace, input_.size() - kSpace);
  message[kSpace] = ' ';
  input_.filled(1);
}

std::size_t ClientReply::receive(std::span<char> into) {
  std::size_t n = stream_->read(std::as_writable_bytes(into));
  has_heard_ = has_heard_ || n > 0;
  return n;
}

// The connection goes back, if it can be used again.
void ClientReply::finish() {
  body_ = Body::read;
  closed_by_context_.reset();
  if (keep_ && input_.size() == 0 && !context_.cancelled()) {
    stream_->set_deadline(net::Stream::TimePoint::max());
    pool_->give(key_, std::move(stream_));
  }
  stream_.reset();
}

std::size_t ClientReply::read_length(std::span<char> into) {
  if (body_ == Body::length)
    into = into.first(static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), body_left_)));
  std::size_t n;
  if (input_.size() > 0) {
    n = std::min(into.size(), input_.size());
    std::memcpy(into.data(), input_.message(), n);
    input_.drop(n);
  } else {
    n = receive(into);
    if (n == 0 && body_ == Body::length) throw ProtocolError("magpie: the reply ended in its body");
  }
  body_left_ -= std::min<std::uint64_t>(n, body_left_);
  if (body_ == Body::length ? body_left_ == 0 : n == 0) finish();
  return n;
}

std::size_t ClientReply::read_chunks(std::span<char> into) {
  for (;;) {
    Parser::Decoded decoded = parser_.decode(input_.bytes(), into);
    input_.drop(decoded.taken);
    if (decoded.progress == Parser::Progress::refused)
      throw ProtocolError("magpie: a chunk of the reply is malformed");
    if (decoded.progress == Parser::Progress::complete) finish();
    if (decoded.given > 0 || body_ == Body::read) return decoded.given;
    if (input_.size() >= max_header_bytes_)
      throw ProtocolError("magpie: the header of a chunk is too large");
    std::size_t n = receive(input_.room(kReplyRoom));
    if (n == 0) throw ProtocolError("magpie: the reply ended in its body");
    input_.filled(n);
  }
}

std::size_t ClientReply::read(std::span<char> into) {
  if (body_ == Body::read || into.empty()) return 0;
  return body_ == Body::chunked ? read_chunks(into) : read_length(into);
}

std::string ClientReply::read_all(std::uint64_t at_most) {
  std::string all;
  std::size_t size = 0;
  while (body_ != Body::read) {
    std::size_t step = std::max<std::size_t>(16 * 1024, size);
    if (body_ == Body::length)
      step = static_cast<std::size_t>(std::min<std::uint64_t>(step, body_left_));
    all.resize(size + step);
    size += read({all.data() + size, step});
    if (size > at_most) throw ProtocolError("magpie: the body of the reply is too large");
  }
  all.resize(size);
  return all;
}

void ClientReply::drain() {
  char away[4096];
  for (std::size_t total = 0; total < kDrainAtMost;) {
    std::size_t n = read(away);
    if (n == 0) return;
    total += n;
  }
}

}  // namespace magpie::http
