// run_until.cc: a server that ends when the process is told to, or a context is over.
#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include <magpie/chan.h>
#include <magpie/context.h>
#include <magpie/go.h>
#include <magpie/http/server.h>
#include <magpie/select.h>
#include <magpie/signals.h>

#include "http/server_core.h"

namespace magpie::http {
namespace {

// Two goroutines leave here what came of their calls. It lives on if nobody waits for the second.
struct Ending {
  explicit Ending(std::shared_ptr<ServerCore> its) : core(std::move(its)) {}

  const std::shared_ptr<ServerCore> core;
  // Each closes when its call has returned, after what it left was written.
  const Chan<void> served, shut_down;
  std::exception_ptr error;  // of serve()
  bool all_ended = false;    // what shutdown() says
};

void start_serving(const std::shared_ptr<Ending>& ending) {
  go([ending] {
    try {
      ending->core->serve();
    } catch (...) {
      ending->error = std::current_exception();
    }
    ending->served.close();
  });
}

void start_shutdown(const std::shared_ptr<Ending>& ending, std::int64_t grace_ns) {
  const detail::DeadlineNs deadline = detail::deadline_after(std::chrono::nanoseconds(grace_ns));
  go([ending, deadline] {
    ending->all_ended = ending->core->shutdown_until(deadline);
    ending->shut_down.close();
  });
}

enum class First { signal, other };

First wait_for(const Chan<int>& signals, const Chan<void>& other) {
  First first = First::other;
  bool signals_ended = false;
  magpie::select(on_recv(signals,
                         [&](std::optional<int> signal) {
                           first = First::signal;
                           signals_ended = !signal.has_value();
                         }),
                 on_recv(other));
  if (!signals_ended) return first;
  (void)other.recv();
  return First::other;
}

// What run_until() returns if somebody else called shutdown().
bool result_of_serving(const Ending& ending) {
  if (ending.error != nullptr) std::rethrow_exception(ending.error);
  return ending.core->timeouts().count() == 0;
}

}  // namespace

bool Server::run_until_ns(const Context& context, std::int64_t grace_ns) {
  auto ending = std::make_shared<Ending>(core_);
  start_serving(ending);
  bool over = false;
  magpie::select(on_recv(context.done(), [&](bool) { over = true; }), on_recv(ending->served));
  if (!over) return result_of_serving(*ending);
  const bool ended =
      ending->core->shutdown_until(detail::deadline_after(std::chrono::nanoseconds(grace_ns)));
  (void)ending->served.recv();
  if (ending->error != nullptr) std::rethrow_exception(ending->error);
  return ended;
}

bool Server::run_until_ns(const Signals& signals, std::int64_t grace_ns) {
  const Chan<int> channel = signals.channel();
  auto ending = std::make_shared<Ending>(core_);
  start_serving(ending);
  if (wait_for(channel, ending->served) == First::other) return result_of_serving(*ending);
  start_shutdown(ending, grace_ns);
  if (wait_for(channel, ending->shut_down) == First::other) return ending->all_ended;
  // Once more: no more grace.
  return ending->core->shutdown_until(detail::deadline_after(std::chrono::seconds(0)));
}

}  // namespace magpie::http
