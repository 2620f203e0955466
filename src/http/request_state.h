// request_state.h: one request after the other, as it is read from a connection.
//
// The head stays in the input buffer until the request is done, found by offsets. Texts that users
// see are strings. They are made when a handler asks for them and kept in a list that is used
// again, so a request allocates nothing once the connection has seen one like it. Between requests
// everything that has grown beyond the usual is given back.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <magpie/context.h>

#include "http/allowance.h"
#include "http/input.h"
#include "http/parser.h"
#include "http/router.h"
#include "http/target.h"

namespace magpie::http {

class Connection;

class RequestState {
 public:
  RequestState(Connection& connection, std::span<char> first_input)
      : input(first_input), connection_(&connection) {}
  void attach(Connection& connection) { connection_ = &connection; }

  // ---- for the connection

  // Before the first byte of a head is looked at.
  void begin(const HeadLimits& limits, bool may_skip_line = true);
  // No line end has come before the request so far: one is passed over, and no other.
  bool may_skip_line() const { return may_skip_line_; }
  // Parses what has come.
  Parser::Progress parse();
  int refusal() const { return parser_.refusal(); }
  const Head& head() const { return parser_.head(); }

  // Once the head is complete: looks the path up. Returns what to answer if it makes no sense; 0:
  // it does.
  [[nodiscard]] int route(const Router& router);
  const Match& match() const { return match_; }
  // Instead, for a head that was refused: the request has as much of a method and a path as was
  // understood, and no body.
  void begin_refused();
  // Then, with the limit of the route: false, and nothing is read: the body is larger than that.
  bool begin_body(std::uint64_t limit);

  bool body_is_read() const { return body_ == Body::read; }
  // Whether what is left of the body may be read and thrown away, to use the connection for another
  // request.
  bool worth_draining() const;
  // Does it. False: it was too much, or not well formed.
  bool drain();
  // Whether bytes of a next request are there.
  bool has_next() const { return body_is_read() && input.size() > body_at_; }
  // Forgets the request. Its body has been read.
  void finish();
  // Forgets everything, and gives back what has grown.
  void forget();

  Input input;

  // ---- for Request

  const std::string& method();
  const std::string& path() const { return path_; }
  const std::string& target();
  const std::string& host();
  const std::string& param(std::string_view name) const;
  const std::string* query(std::string_view name);
  const std::string* field(std::string_view name);
  std::string_view field_value(std::size_t i) const;
  const std::string& body();
  std::size_t read(std::span<char> into);
  // Whether load() would read a body, of at most that size.
  bool may_load(std::uint64_t at_most) const;
  // Reads the whole body now, for body() or read() later. Blocks. Throws as body().
  void load();
  const Context& context();
  // The handler is done: so is everything that it has started by its context.
  void end_context();

 private:
  enum class Body : std::uint8_t { none_yet, length, chunked, read, failed };

  void begin_texts();
  std::string& new_text();
  std::string_view slice(const Slice& place) const { return place.of(input.message()); }
  Target target_parts() const;
  [[nodiscard]] int split_path(std::string_view path);
  void fill_params();
  std::size_t read_more(std::span<char> into);
  std::size_t read_length(std::span<char> into);
  std::size_t read_chunks(std::span<char> into);
  std::size_t receive(std::span<char> into);
  void fill(std::size_t least);
  void say_continue();
  void give_back(std::size_t body_size);
  void take_body_memory(std::size_t more);
  void release_body_memory();
  [[noreturn]] void fail(int status);

  static constexpr std::uint64_t kDrainAtMost = 64 * 1024;

  Connection* connection_;
  Parser parser_;
  bool may_skip_line_ = false;

  std::vector<std::unique_ptr<std::string>> texts_;
  std::size_t texts_used_ = 0;

  const std::string* method_ = nullptr;
  const std::string* target_ = nullptr;
  std::string path_;
  std::string segment_texts_;
  std::vector<std::string_view> segments_;
  Router::Values values_;
  Match match_;
  std::vector<std::string> params_;
  std::vector<std::string*> field_texts_;  // by field; null: not asked for yet
  struct QueryText {
    std::uint32_t at;  // of the pair, in the query
    std::string* value;
  };
  std::vector<QueryText> query_texts_;  // of what was asked for

  Body body_ = Body::none_yet;
  bool continue_awaited_ = false;  // by the peer, before it sends the body
  bool read_in_parts_ = false;
  bool read_whole_ = false;
  bool was_loaded_ = false;       // all of it is in whole_
  int failure_ = 400;             // what is wrong with it, if it has failed
  std::size_t body_at_ = 0;       // what of the input is not of the head
  std::uint64_t body_left_ = 0;   // with a length
  std::uint64_t body_taken_ = 0;  // in chunks
  std::uint64_t body_wire_ = 0;   // the same with all that is around them
  std::uint64_t body_limit_ = 0;
  std::int64_t body_due_ns_ = 0;  // the peer has to send so much more until then
  std::uint64_t body_credit_ = 0;
  Allowance body_time_;  // of all of it
  std::string whole_;
  std::size_t whole_taken_ = 0;   // by read(), if it was loaded
  std::size_t memory_taken_ = 0;  // of what the server has for bodies

  std::optional<Context> context_;
};

}  // namespace magpie::http
