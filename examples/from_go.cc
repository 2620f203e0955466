// from_go.cc: what Go programmers write, in Magpie: the right column of docs/guide/from-go.md.
#include <magpie/magpie.h>
#include <magpie/net.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <string>

using namespace magpie;
using namespace std::chrono_literals;

namespace {

void expect(bool what, const char* text) {
  if (what) return;
  std::printf("not so: %s\n", text);
  std::exit(1);
}

std::atomic<int> calls{0};
int f(int x) {
  ++calls;
  return x;
}

void goroutines() {
  int x = 1;
  go(f, x);
  go([=] { f(x); });
  auto handle = spawn(f, x);
  int result = handle.join();
  expect(result == 1, "a result");
  yield();
  sleep_for(1ms);
  set_procs(4);
  expect(procs() == 4 && num_cpu() >= 1, "procs");
  expect(num_goroutines() >= 1, "goroutines");
  ThreadLock lock;
}

void channels() {
  Chan<int> c;
  Chan<int> b(10);
  Chan<int> nothing = Chan<int>::nil();
  int v = 5;
  b.send(v);
  std::optional<int> got = b.recv();
  bool ok = got.has_value();
  expect(ok && *got == 5 && nothing.size() == 0, "a value");
  b.send(6);
  b.close();
  for (int value : b) f(value);
  expect(b.size() == 0 && b.capacity() == 10, "len and cap");
  Chan<void> signal(1);
  signal.send();
  Context ctx = Context::background().with_timeout(1s);
  Chan<int> out(1);
  select(on_recv(c, [](std::optional<int> came) { f(came.value_or(0)); }),
         on_send(out, v, [] { f(0); }), on_done(ctx), on_timeout(1s));
  select(on_recv(c), otherwise([] { f(0); }));
}

int handle_all(Chan<int> requests, Chan<void> quit) {
  int sum = 0;
  while (select_next(on_recv(requests, [&](int request) { sum += request; }),
                     on_recv(quit, [] { return false; }))) {
  }
  return sum;
}

void locks() {
  Mutex mutex;
  RWMutex rw;
  {
    std::lock_guard hold(mutex);
    std::shared_lock reading(rw);
  }
  WaitGroup wg;
  wg.go([] { f(1); });
  wg.wait();
  Once once;
  once.call([] { f(1); });
  CondVar changed;
  bool ready = true;
  std::unique_lock hold(mutex);
  changed.wait(hold, [&] { return ready; });
  Semaphore semaphore(3);
  semaphore.acquire();
  semaphore.release();
  std::atomic<int> n{0};
  ++n;
}

void contexts() {
  Context parent = Context::background();
  Context ctx = parent.with_cancel();
  Context timed = parent.with_timeout(1s);
  Context valued = parent.with_value("user", std::string("Ada"));
  std::optional<std::string> user = valued.value<std::string>("user");
  expect(user == "Ada", "a value of a context");
  ctx.cancel(std::runtime_error("enough"));
  ctx.done().recv();
  expect(ctx.err() == std::errc::operation_canceled && ctx.cause() != nullptr, "cancelled");
  AfterFunc stop = timed.after_func([] { f(1); });
}

void groups() {
  TaskGroup group;
  group.set_limit(8);
  group.go([](const Context& context) { f(context.cancelled() ? 1 : 0); });
  group.wait();
  SingleFlight<std::string, int> flights;
  int shared = flights.call("key", [] { return f(1); });
  expect(shared == 1, "one flight");
}

void time() {
  Chan<TimePoint> later = after(1ms);
  later.recv();
  Timer timer = after_func(1h, [] { f(1); });
  timer.stop();
  timer.reset(1h);
  timer.stop();
  Ticker ticker(1ms);
  ticker.channel().recv();
}

void ends() {
  Defer tidy([] { f(1); });
  try {
    throw std::runtime_error("a panic");
  } catch (const std::exception& error) {
    std::printf("recovered: %s\n", error.what());
  }
}

}  // namespace

int main() {
  magpie::run([] {
    goroutines();
    channels();
    Chan<int> requests(2);
    Chan<void> quit;
    requests.send(3);
    auto handling = spawn(handle_all, requests, quit);
    while (requests.size() != 0) yield();
    quit.close();
    expect(handling.join() == 3, "all requests");
    locks();
    contexts();
    groups();
    time();
    ends();
  });
  std::puts("as in Go");
}
