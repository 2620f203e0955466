// context.cc: a request that is given up: everybody who works on it is told.
#include <magpie/magpie.h>

#include <cstdio>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>

using namespace magpie;
using namespace std::chrono_literals;

// Asks a database that takes its time; gives up when the request is over.
std::optional<std::string> query(const Context& request, std::chrono::milliseconds takes) {
  std::optional<std::string> answer;
  select(on_recv(request.done(), [](bool) {}),
         on_timeout(takes, [&] { answer = "answer for " + *request.value<std::string>("user"); }));
  return answer;
}

// Closes the connection of a library that knows nothing of contexts when the request is over.
void talk(const Context& request, Chan<void> connection) {
  AfterFunc hang_up = request.after_func([=] { connection.close(); });
  connection.recv();  // the library's call that waits
}

int main() {
  return run([] {
    Context user = Context::background().with_value("user", "Ada");
    const std::string fast = query(user.with_timeout(1h), 1ms).value_or("given up");
    Context request = user.with_timeout(50ms);
    const std::string slow = query(request, 1h).value_or("given up");
    std::printf("fast query: %s; slow query: %s\n", fast.c_str(), slow.c_str());
    std::printf("because: %s\n", request.err().message().c_str());
    bool right = fast == "answer for Ada" && slow == "given up";
    right = right && request.err() == std::errc::timed_out;

    // Cancelling one ends those that were made from it, and asks code that knows only the standard
    // library to stop.
    Context job = Context::background().with_cancel();
    Context part = job.with_cancel();
    std::stop_token token = part.stop_token();
    job.cancel();
    std::printf("the part was asked to stop: %s\n", token.stop_requested() ? "yes" : "no");
    right = right && token.stop_requested() && part.err() == std::errc::operation_canceled;

    // Says why.
    Context call = Context::background().with_cancel();
    auto talker = spawn([=] { talk(call, Chan<void>()); });
    call.cancel(std::runtime_error("the peer hung up"));
    talker.join();
    std::string why;
    try {
      std::rethrow_exception(call.cause());
    } catch (const std::exception& cause) {
      why = cause.what();
    }
    std::printf("the call ended: %s\n", why.c_str());
    right = right && why == "the peer hung up";
    return right ? 0 : 1;
  });
}
