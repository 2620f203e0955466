// spawn_join.cc: goroutines that return a value, or throw.
//
// spawn() gives a JoinHandle. join() waits for the goroutine and returns its result; an exception
// that left the goroutine is thrown again where join() is called. A handle that is never joined
// joins in its destructor.
#include <magpie/magpie.h>

#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

int failures = 0;

void expect(bool ok, const char* what) {
  std::printf("%s  %s\n", ok ? "ok   " : "WRONG", what);
  if (!ok) ++failures;
}

std::string parse_port(int port) {
  if (port > 65535) throw std::out_of_range("no such port: " + std::to_string(port));
  return "port " + std::to_string(port);
}

void results_and_exceptions() {
  // Arguments are copied or moved into the goroutine, like those of std::thread.
  magpie::JoinHandle<std::string> good = magpie::spawn(parse_port, 8080);
  magpie::JoinHandle<std::string> bad = magpie::spawn(parse_port, 80800);
  expect(good.join() == "port 8080", "join() returns the result");
  try {
    bad.join();
    expect(false, "join() rethrows the exception");
  } catch (const std::out_of_range& error) {
    expect(error.what() == std::string("no such port: 80800"), "join() rethrows the exception");
  }
}

void many_handles() {
  std::vector<magpie::JoinHandle<int>> squares;
  for (int i = 0; i < 1000; ++i) squares.push_back(magpie::spawn([i] { return i * i; }));
  long sum = 0;
  for (auto& square : squares) sum += square.join();
  expect(sum == 332'833'500, "a thousand results add up");
}

void move_only_values() {
  auto boxed = magpie::spawn([box = std::make_unique<int>(41)]() mutable {
    ++*box;
    return std::move(box);
  });
  expect(*boxed.join() == 42, "values may be move-only, on the way in and on the way out");
}

void detached() {
  magpie::WaitGroup done;
  done.add(1);
  magpie::spawn([&] { done.done(); }).detach();  // nobody wants its result
  done.wait();
  expect(true, "a detached goroutine runs on alone");
}

}  // namespace

int main() {
  magpie::run([] {
    results_and_exceptions();
    many_handles();
    move_only_values();
    detached();
  });

  // run() itself returns what its function returns, and throws what it throws.
  int answer = magpie::run([] { return magpie::spawn([] { return 42; }).join(); });
  expect(answer == 42, "run() returns main's result");
  return failures == 0 ? 0 : 1;
}
