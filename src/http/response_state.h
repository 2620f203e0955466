// response_state.h: one response after the other, as it is written to a connection.
//
//    open --send()--------------------------------> done      head and body in one write
//    open --write() beyond the buffer, flush()--> streaming --finish()--> done
//    open --write() a little, finish()------------> done      as send()
//
// The status line is not known until the head is sent, so the fields are collected as text. `out_`
// holds bytes that were held back, because the answer to the next request, which is here already,
// will go with them.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace magpie::http {

class Connection;

class ResponseState {
 public:
  explicit ResponseState(Connection& connection) : connection_(&connection) {}
  void attach(Connection& connection) { connection_ = &connection; }

  struct Terms {
    int version;
    bool head_only;   // the answer to HEAD
    bool keep_alive;  // the peer would like that
    bool hold_back;   // may wait for the next response
  };
  // ---- for the connection

  void begin(const Terms& terms);
  // The handler has returned.
  void finish();
  // It threw, and nothing was sent: forgets what it has set. False: something was.
  bool reset();
  bool keep_alive() const { return keep_alive_; }
  void end_connection() { keep_alive_ = false; }
  bool done() const { return stage_ == Stage::done; }
  // Sends what was held back.
  void flush_held();
  // Forgets everything, and gives back what has grown.
  void forget();
  // An interim response.
  void send_now(std::string_view bytes);

  // ---- a request with a time-out: the handler answers, or the timer, in another goroutine
  void set_timed() { timed_ = true; }
  // The timer's goroutine. True: it may answer, and the handler's attempts fail.
  bool try_answer_as_timer();
  bool timer_answered() const {
    return answerer_.load(std::memory_order_acquire) == Answerer::timer;
  }
  static constexpr int kTimerStatus = 503;
  static constexpr std::string_view kTimerBody = "Service Unavailable\n";
  void date(std::string& to);

  // ---- for Response

  void set_status(int code);
  // Of the answer that the client gets, also if it is the timer's; so is body_bytes().
  int status() const { return timer_answered() ? kTimerStatus : status_; }
  void set_field(std::string_view name, std::string_view value);
  void add_field(std::string_view name, std::string_view value);
  void send(std::string_view body);
  void write(std::string_view bytes);
  void flush();
  bool started() const { return stage_ != Stage::open; }
  std::uint64_t body_bytes() const {
    if (timer_answered()) return terms_.head_only ? 0 : kTimerBody.size();
    return body_bytes_;
  }

 private:
  enum class Stage : std::uint8_t { open, streaming, done };
  enum class Framing : std::uint8_t { none, length, chunked, until_end };
  // Exactly one of handler and timer moves answerer_ away from nobody.
  enum class Answerer : std::uint8_t { nobody, handler, timer };

  void need_open(const char* what) const;
  void begin_answer();
  void append_head(std::optional<std::uint64_t> length);
  void begin_streaming();
  void put_out(std::string_view body);
  void send_pending(std::string_view more);
  void remove_field(std::string_view name);
  bool has_no_body() const { return status_ == 204 || status_ == 304; }

  static constexpr std::size_t kWriteBuffer = 8 * 1024;
  static constexpr std::size_t kHoldAtMost = 16 * 1024;
  static constexpr std::size_t kJoinAtMost = 1024;

  Connection* connection_;
  Terms terms_{};
  Stage stage_ = Stage::open;
  Framing framing_ = Framing::none;
  bool keep_alive_ = true;
  bool has_date_ = false;
  bool timed_ = false;
  int status_ = 200;
  std::uint64_t body_bytes_ = 0;
  std::optional<std::uint64_t> announced_;
  std::string fields_;                                // "Name: value\r\n" ...
  std::string pending_;                               // of the body, not sent
  std::string out_;                                   // for the wire, not sent
  std::atomic<Answerer> answerer_{Answerer::nobody};  // atomic, a lock: handler or timer takes it

  long long date_second_ = -1;
  std::string date_;
};

}  // namespace magpie::http
