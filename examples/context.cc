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
  run([] {
    Context request = Context::background().with_value("user", "Ada").with_timeout(50ms);

    std::printf("fast query: %s\n", query(request, 1ms).value_or("given up").c_str());
    std::printf("slow query: %s\n", query(request, 1h).value_or("given up").c_str());
    std::printf("because: %s\n", request.err().message().c_str());

    // Cancelling one ends those that were made from it, and asks code that knows only the standard
    // library to stop.
    Context job = Context::background().with_cancel();
    Context part = job.with_cancel();
    std::stop_token token = part.stop_token();
    job.cancel();
    std::printf("the part was asked to stop: %s\n", token.stop_requested() ? "yes" : "no");

    // Says why.
    Context call = Context::background().with_cancel();
    auto talker = spawn([=] { talk(call, Chan<void>()); });
    call.cancel(std::runtime_error("the peer hung up"));
    talker.join();
    try {
      std::rethrow_exception(call.cause());
    } catch (const std::exception& cause) {
      std::printf("the call ended: %s\n", cause.what());
    }
  });
}
