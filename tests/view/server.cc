// server.cc: debug pages, for tests/view/run. Prints their address and serves until its standard
// input ends.
//
// With an argument it shows that trace file. With --token TOKEN, or without an argument, it shows
// itself, a busy program:
//
//   spawn storm       one goroutine starts many that compute for a moment: they are stolen
//   ping and pong     two goroutines hand a number to and fro
//   dreamers          wait for ever, so that lists have something to fold
#include <magpie/debug_server.h>
#include <magpie/magpie.h>
#include <magpie/net.h>

#include <atomic>
#include <chrono>
#include <cstdio>

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

void compute_for(microseconds time) {
  const auto until = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < until) {
  }
}

void storm(const std::atomic<bool>& ends) {
  while (!ends) {
    magpie::WaitGroup wave;
    for (int i = 0; i < 60; ++i) wave.go([] { compute_for(microseconds(100)); });
    wave.wait();
    magpie::sleep_for(milliseconds(10));
  }
}

void play(const std::atomic<bool>& ends) {
  magpie::Chan<int> there, back;
  magpie::go({.name = "pong"}, [there, back] {
    while (auto number = there.recv()) back.send(*number);
  });
  for (int i = 0; !ends; ++i) {
    there.send(i);
    (void)back.recv();
    if (i % 100 == 99) magpie::sleep_for(milliseconds(5));
  }
  there.close();
}

void print_address(const magpie::debug::Server& pages) {
  std::printf("%s\n", pages.url().c_str());
  std::fflush(stdout);
}

void show(const char* path) {
  const magpie::debug::Server pages = magpie::debug::serve_trace(path);
  print_address(pages);
  magpie::net::wait_readable(0);
}

void show_load(const char* token) {
  const magpie::debug::Server pages = magpie::debug::serve("127.0.0.1:0", {.token = token});
  print_address(pages);
  std::atomic<bool> ends = false;
  magpie::WaitGroup all, forever;
  forever.add(1);
  for (int i = 0; i < 20; ++i) {
    all.add(1);
    magpie::go({.name = "dreamer"}, [&] {
      forever.wait();
      all.done();
    });
  }
  all.go([&] { storm(ends); });
  all.go([&] { play(ends); });

  magpie::net::wait_readable(0);  // the end of the standard input
  ends = true;
  forever.done();
  all.wait();
}

}  // namespace

int main(int argc, char** argv) {
  magpie::run(magpie::Options{.procs = 4},
              [&] { argc == 2 ? show(argv[1]) : show_load(argc == 3 ? argv[2] : ""); });
}
