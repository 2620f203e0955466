#include <magpie/http/middleware.h>

#include <algorithm>
#include <atomic>
#include <ctime>
#include <memory>
#include <mutex>
#include <optional>
#include <ostream>
#include <string>

#include <magpie/detail/caught.h>
#include <magpie/mutex.h>
#include <magpie/time.h>
#include <magpie/wait_group.h>

#include "http/address_table.h"
#include "http/connection.h"
#include "http/exchange.h"
#include "http/server_core.h"
#include "http/text.h"

namespace magpie::http {

Middleware limit_concurrency(std::size_t requests) {
  auto inside = std::make_shared<std::atomic<std::size_t>>(0);
  return [inside, requests](Handler next) -> Handler {
    return [inside, requests, next = std::move(next)](Request& request, Response& response) {
      Exchange& exchange = Exchange::of(request);
      // A body is read before a place is taken: a client that sends it slowly keeps nobody else
      // out. Bodies that are too large for memory are read by the handler.
      if (inside->load(std::memory_order_relaxed) < requests &&
          exchange.connection().early_status() == 0 && exchange.in.match().route != nullptr &&
          exchange.in.may_load(exchange.connection().core().options().max_body_bytes))
        exchange.in.load();
      struct Place {
        std::atomic<std::size_t>& count;
        // relaxed: only the number counts
        explicit Place(std::atomic<std::size_t>& all)
            : count(all), before(all.fetch_add(1, std::memory_order_relaxed)) {}
        ~Place() { count.fetch_sub(1, std::memory_order_relaxed); }
        std::size_t before;
      } place(*inside);
      if (place.before >= requests) {
        response.status(503).header("Retry-After", "1").send("Service Unavailable\n");
        return;
      }
      next(request, response);
    };
  };
}

namespace {

// The connection's entry in the table, made with its first request. Null: too many connections.
CountedConnection* counted_in(const std::shared_ptr<AddressTable>& table, Connection& connection,
                              const AddressTable::Key& key) {
  if (void* known = connection.attached(table.get())) return static_cast<CountedConnection*>(known);
  std::shared_ptr<CountedConnection> counted = CountedConnection::make(table, key);
  if (counted) connection.attach(table.get(), counted);
  return counted.get();
}

void answer_too_many(Response& response, std::int64_t wait_ns) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  response.status(429)
      .header("Retry-After",
              std::to_string(std::max<std::int64_t>((wait_ns + kSecond - 1) / kSecond, 1)))
      .header("Content-Type", "text/plain; charset=utf-8")
      .send("Too Many Requests\n");
}

}  // namespace

Middleware limit_per_address(const AddressLimits& limits) {
  auto table =
      std::make_shared<AddressTable>(limits.connections, limits.requests_per_second, limits.burst);
  return [table](Handler next) -> Handler {
    return [table, next = std::move(next)](Request& request, Response& response) {
      Connection& connection = Exchange::of(request).connection();
      std::optional<AddressTable::Key> key = connection.remote_key();
      if (!key) return next(request, response);
      if (table->counts_connections() && counted_in(table, connection, *key) == nullptr) {
        response.header("Connection", "close");
        return answer_too_many(response, 0);
      }
      if (table->counts_requests()) {
        if (std::int64_t wait = table->add_request(*key, detail::steady_now_ns()))
          return answer_too_many(response, wait);
      }
      next(request, response);
    };
  };
}

namespace {

constexpr net::Stream::TimePoint kNoTimeLeft;

// What the timer of a request does, in a goroutine of its own while the handler still runs. If the
// handler has begun to answer, it is cut off by deadlines; if it has sent all by then, they are
// taken away again by its goroutine (Stop).
void time_is_up(Exchange& exchange, const Context& context) {
  net::Stream& stream = exchange.connection().stream();
  try {
    if (exchange.out.try_answer_as_timer()) {
      std::string answer = "HTTP/1.1 503 Service Unavailable\r\n";
      append_date(answer.append("Date: "), static_cast<long long>(std::time(nullptr)));
      answer +=
          "\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 20\r\nConnection: "
          "close\r\n\r\n";
      static_assert(ResponseState::kTimerStatus == 503 && ResponseState::kTimerBody.size() == 20);
      if (exchange.in.method() != "HEAD") answer += ResponseState::kTimerBody;
      stream.set_write_deadline(std::chrono::steady_clock::now() + std::chrono::seconds(5));
      stream.write(answer);
      stream.shutdown_write();
      stream.set_read_deadline(kNoTimeLeft);  // a handler that waits for the body
    } else {
      stream.set_deadline(kNoTimeLeft);
    }
  } catch (...) {
    // The peer has gone: nobody to answer. Or there is no memory for an answer.
    (void)detail::caught();
  }
  context.cancel();
}

}  // namespace

Middleware timeout_ns(std::int64_t nanoseconds) {
  return [nanoseconds](Handler next) -> Handler {
    return [nanoseconds, next = std::move(next)](Request& request, Response& response) {
      Exchange& exchange = Exchange::of(request);
      exchange.out.flush_held();
      exchange.out.set_timed();
      Context context = exchange.in.context();
      auto fired = std::make_shared<WaitGroup>();
      fired->add(1);
      Timer timer = after_func(std::chrono::nanoseconds(nanoseconds), [&exchange, context, fired] {
        time_is_up(exchange, context);
        fired->done();
      });
      // However the handler ends, the timer's goroutine must be done with the connection before it
      // goes on.
      struct Stop {
        Timer& timer;
        WaitGroup& fired;
        Exchange& exchange;
        ~Stop() {
          if (timer.stop()) return;
          fired.wait();
          Connection& connection = exchange.connection();
          if (exchange.out.timer_answered() || !exchange.out.done() || connection.is_broken()) {
            exchange.out.end_connection();
            return;
          }
          // The answer was complete before the time was up, or as it was: what it said of the
          // connection holds.
          connection.stream().set_deadline(net::Stream::TimePoint::max());
        }
      } stop{timer, *fired, exchange};
      next(request, response);
      exchange.out.finish();  // what the handler has left to send belongs to its time
    };
  };
}

namespace {

// Nobody forges a line, or talks to the terminal that shows it.
void append_escaped(std::string& to, std::string_view text) {
  constexpr const char* kHex = "0123456789ABCDEF";
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > ' ' && byte < 0x7f && c != '"' && c != '\\') {
      to += c;
    } else {
      to.append("\\x").append(1, kHex[byte >> 4]).append(1, kHex[byte & 15]);
    }
  }
}

std::string log_line(const Request& request, const Response& response, long long microseconds) {
  const std::string host = Exchange::of(request).connection().remote_host();
  std::string line;
  append_escaped(line, host.empty() ? "-" : host);  // a client of a Unix socket names itself
  std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char date[40];
  std::size_t date_size =
      std::strftime(date, sizeof date, " - - [%d/%b/%Y:%H:%M:%S +0000] \"", &parts);
  line.append(date, date_size);
  if (request.method().empty()) {
    line += '-';  // no request line was understood
  } else {
    line.append(request.method()).append(" ");
    append_escaped(line, request.target());
    line.append(request.version() == 10 ? " HTTP/1.0" : " HTTP/1.1");
  }
  append_number(line.append("\" "), static_cast<unsigned>(response.status()));
  append_number(line.append(" "), response.body_bytes());
  append_number(line.append(" "), static_cast<unsigned long long>(microseconds));
  return line;
}

}  // namespace

Middleware access_log(std::function<void(std::string_view)> write_line) {
  detail::check_not_empty(write_line);
  auto write = std::make_shared<std::function<void(std::string_view)>>(std::move(write_line));
  return [write](Handler next) -> Handler {
    return [write, next = std::move(next)](Request& request, Response& response) {
      const auto began = std::chrono::steady_clock::now();
      auto log = [&] {
        auto took = std::chrono::steady_clock::now() - began;
        (*write)(log_line(request, response,
                          std::chrono::duration_cast<std::chrono::microseconds>(took).count()));
      };
      try {
        next(request, response);
      } catch (...) {
        Exchange::of(request).connection().answer_error(detail::caught());
        log();
        return;
      }
      log();
    };
  };
}

Middleware access_log(std::ostream& out) {
  auto mutex = std::make_shared<Mutex>();
  return access_log([mutex, &out](std::string_view line) {
    std::string whole(line);
    whole += '\n';
    std::lock_guard hold(*mutex);
    out << whole << std::flush;
  });
}

}  // namespace magpie::http
