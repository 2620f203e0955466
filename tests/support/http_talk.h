// http_talk.h: raw bytes to an HTTP server over a connection in memory, and what it says.
#pragma once

#include <magpie/http.h>
#include <magpie/magpie.h>

#include <string>
#include <string_view>
#include <utility>

#include "support/memory_stream.h"

namespace magpie::support {

// The shortest request that is answered.
inline constexpr std::string_view kGet = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

// A client's end; the server's end is served by a goroutine of its own.
class Talk {
 public:
  explicit Talk(http::Server& server, std::size_t at_once = MemoryStream::kNoLimit,
                std::size_t capacity = MemoryStream::kNoLimit) {
    auto [mine, its] = MemoryStream::pair(at_once, capacity);
    stream_ = std::move(mine);
    stream_->set_deadline(std::chrono::seconds(50));  // a test that hangs says where
    served_ = spawn(
        [&server, its = std::move(its)]() mutable { server.serve_connection(std::move(its)); });
  }
  ~Talk() { stream_->close(); }

  void say(std::string_view bytes) { stream_->write(bytes); }
  void end() { stream_->shutdown_write(); }
  void close() { stream_->close(); }
  MemoryStream& stream() { return *stream_; }

  // All until the server ends the connection.
  std::string hear_all() {
    while (hear_more()) {
    }
    return std::exchange(heard_, {});
  }
  // Until the text has come; returns all up to its end.
  std::string hear_until(std::string_view text) {
    std::size_t at;
    while ((at = heard_.find(text)) == std::string::npos) {
      if (!hear_more()) return std::exchange(heard_, {}) + "<end>";
    }
    std::string result = heard_.substr(0, at + text.size());
    heard_.erase(0, at + text.size());
    return result;
  }
  // One response whose length is announced; its body.
  std::string hear_body() {
    head_ = hear_until("\r\n\r\n");
    std::size_t at = head_.find("Content-Length: ");
    std::size_t size = at == std::string::npos ? 0 : std::stoul(head_.substr(at + 16));
    while (heard_.size() < size && hear_more()) {
    }
    std::string body = heard_.substr(0, size);
    heard_.erase(0, size);
    return body;
  }
  const std::string& head() const { return head_; }
  int status() const { return head_.size() > 12 ? std::stoi(head_.substr(9, 3)) : 0; }

  // Blocks until the server is done with the connection.
  void wait_for_server() { served_.join(); }

 private:
  bool hear_more() {
    char bytes[4096];
    std::size_t n = stream_->read(std::as_writable_bytes(std::span(bytes)));
    heard_.append(bytes, n);
    return n > 0;
  }

  std::unique_ptr<MemoryStream> stream_;
  JoinHandle<void> served_;
  std::string heard_, head_;
};

// What a server answers to these bytes, which end there.
inline std::string answer_to(http::Server& server, std::string_view bytes,
                             std::size_t at_once = MemoryStream::kNoLimit) {
  Talk talk(server, at_once);
  talk.say(bytes);
  talk.end();
  return talk.hear_all();
}

// The status in the first line; 0: there is none.
inline int status_of(std::string_view answer) {
  return answer.starts_with("HTTP/1.1 ") ? std::stoi(std::string(answer.substr(9, 3))) : 0;
}

}  // namespace magpie::support
