// connection.h: one connection of a server, from its first request to its end; a goroutine of its
// own runs it.
//
//     wait for a head --> parse --> handler --> finish, drain --+--> close
//        ^    |  idle for a second                              |
//        |    v                                                 |
//        |  dormant: without buffers, one page of stack         |
//        +------------------- keep alive <----------------------+
//
// A request, file by file:
//   server.cc            accepts the connection and starts its goroutine, which calls run()
//   connection.cc        receive_head() reads into the Input of the exchange (exchange.h, input.h)
//   request_state.cc     parse() finds the head's parts (parser.cc), route() its handler
//                        (router.cc)
//   connection.cc        answer() begins the ResponseState and calls middlewares and handler
//   request.cc, response.cc     what the handler sees: shells of RequestState and ResponseState
//   response_state.cc    makes the bytes; connection.cc send() writes them to the stream
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <magpie/net/stream.h>
#include <magpie/net/tcp.h>

#include "http/address_table.h"
#include "http/allowance.h"
#include "http/exchange.h"
#include "http/timeouts.h"

namespace magpie::http {

class ServerCore;

class Connection {
 public:
  Connection(ServerCore& core, std::unique_ptr<net::Stream> stream);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Serves until the end. Does not throw, whatever the peer does and however little memory there
  // is.
  void run();

  // ---- for the exchange Blocks for at least a byte; 0: the end. Throws StatusError 408 when the
  // time of the state is over, std::system_error.
  std::size_t receive_body(std::span<char> into, std::int64_t due_ns);
  // Blocks until all is taken. Throws std::system_error; once it has, always.
  void send(std::span<const std::span<const std::byte>> parts);
  void send(std::string_view head, std::string_view body);
  // After what was held back.
  void send_interim(std::string_view bytes) { exchange_->out.send_now(bytes); }
  // Whether another request may follow this one, as far as can be told.
  bool may_keep_alive() const;
  std::string remote_address() const;
  std::string remote_host() const;                // without the port
  std::optional<AddressTable::Key> remote_key();  // asks the system once
  bool is_broken() const { return broken_; }
  void throw_if_write_failed() const;
  // Lives as long as the connection, under the address of its owner.
  void attach(const void* owner, std::shared_ptr<void> thing) {
    attached_.emplace_back(owner, std::move(thing));
  }
  void* attached(const void* owner) const;
  ServerCore& core() { return core_; }
  int early_status() const { return early_status_; }
  net::Stream& stream() { return *stream_; }
  StateClock& clock() { return clock_; }
  // What a handler threw: the answer to that.
  void answer_error(std::exception_ptr error);

 private:
  enum class Got : std::uint8_t { head, end, refused };

  void serve();
  void give_way();
  Got receive_head();
  std::int64_t time_to_take_ns() const;
  void send_some(std::span<const std::span<const std::byte>> parts, std::size_t size);
  bool receive_more();
  bool read_head();
  bool bytes_are_here() const;
  bool go_dormant();
  bool answer();
  const Route* begin_request();
  void call_handler();
  void refuse(int status);
  void linger();

  ServerCore& core_;
  std::unique_ptr<net::Stream> stream_;
  StateClock clock_;
  std::unique_ptr<Exchange> exchange_;  // null: dormant
  std::vector<std::pair<const void*, std::shared_ptr<void>>> attached_;
  std::optional<AddressTable::Key> remote_key_;
  bool remote_key_known_ = false;
  bool is_refused_ = false;      // its head cannot be understood, or comes too slowly
  bool broken_ = false;          // writing failed, or reading other than by its end
  std::error_code write_error_;  // of the first write that has failed
  bool first_ = true;
  bool had_second_chance_ = false;  // its first bytes may have come, and not been seen in time
  unsigned steps_since_yield_ = 0;
  bool last_ = false;             // asked to end; the request that had come is served
  int early_status_ = 0;          // what to answer without asking a handler; 0: nothing
  Allowance answer_time_;         // of the whole answer
  std::int64_t head_due_ns_ = 0;  // of the head that has begun; 0: none has
  std::int64_t idle_due_ns_ = 0;  // of the idleness since the last answer; 0: it has not begun
};

}  // namespace magpie::http
