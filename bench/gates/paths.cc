// paths: the hottest paths of the runtime, each as a loop whose instructions callgrind counts; see
// `run` beside it, which starts this program and reads what callgrind writes.
//
// Usage: paths list   the names
//        paths build  what this program was built with: counts of other builds differ
//        paths NAME   under valgrind --tool=callgrind --collect-atstart=no
//
// Each path has a body that does n operations. After a warm-up the program runs it with few and
// with many operations, several times each, and makes callgrind write its counts after each batch.
// The difference between many and few is what the operations alone cost.
//
// What is counted: callgrind collects for each thread by itself, and only the thread of main, which
// holds the only P, is told to. So what sysmon and other threads do does not count. Preemption is
// off, because it would depend on the clock. Sockets are Unix sockets: what is written can be read
// at once, whatever the machine does, while TCP may deliver later.
#include <gnu/libc-version.h>
#include <magpie/http.h>
#include <magpie/magpie.h>
#include <magpie/net.h>
#include <unistd.h>
#include <valgrind/callgrind.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace std::chrono_literals;
using magpie::Chan;
using magpie::net::UnixConn;
using magpie::net::UnixListener;

constexpr int kBatches = 5;  // of each length; `run` takes the smallest

// How many operations the batches of a path have.
struct Lengths {
  long few, many;
};
using Step = std::function<void(long)>;

// Calls before(n), body(n) and after(n). Only body counts.
void count_batch(const char* label, long n, const Step& before, const Step& body,
                 const Step& after) {
  if (before) before(n);
  pid_t thread = gettid();
  CALLGRIND_ZERO_STATS;
  CALLGRIND_TOGGLE_COLLECT;
  body(n);
  CALLGRIND_TOGGLE_COLLECT;
  if (gettid() != thread) {
    std::fprintf(stderr, "main moved from thread %d to %d: nothing was counted\n", thread,
                 gettid());
    std::_Exit(3);
  }
  if (label != nullptr) CALLGRIND_DUMP_STATS_AT(label);
  if (after) after(n);
}

void count(Lengths lengths, const Step& body, const Step& before = {}, const Step& after = {}) {
  count_batch(nullptr, lengths.many, before, body, after);  // warm
  for (int i = 0; i < kBatches; ++i) {
    for (long n : {lengths.few, lengths.many}) {
      count_batch(("operations=" + std::to_string(n)).c_str(), n, before, body, after);
    }
  }
}

// n operations, each a call of f.
template <class F>
Step times(F f) {
  return [f](long n) {
    for (long i = 0; i < n; ++i) f();
  };
}

// ---- goroutines

// What go() costs its caller. 150 goroutines fit the queue of the P; they run after the count.
void go_only() {
  magpie::WaitGroup all;
  count(
      {50, 150}, times([&all] { magpie::go([&all] { all.done(); }); }),
      [&all](long n) { all.add(static_cast<int>(n)); }, [&all](long) { all.wait(); });
}

// From go() to the end of the goroutine, which never waits.
void go_and_end() {
  count({50, 150}, [](long n) {
    magpie::WaitGroup all;
    all.add(static_cast<int>(n));
    for (long i = 0; i < n; ++i) magpie::go([&all] { all.done(); });
    all.wait();
  });
}

void spawn_and_join() {
  count({100, 300}, times([] { magpie::spawn([] {}).join(); }));
}

// Two goroutines take turns: an operation is two yields, of which each switches stacks.
void yield_in_turns() {
  bool ended = false;
  auto partner = magpie::spawn([&ended] {
    while (!ended) magpie::yield();
  });
  count({100, 300}, times([] { magpie::yield(); }));
  ended = true;
}

void yield_alone() {
  count({100, 300}, times([] { magpie::yield(); }));
}

// Two goroutines wake each other: an operation is two waits and two wake-ups.
void park_and_ready() {
  magpie::Semaphore there(0), back(0);
  bool ended = false;
  auto partner = magpie::spawn([&] {
    for (;;) {
      there.acquire();
      if (ended) return;
      back.release();
    }
  });
  count({100, 300}, times([&] {
          there.release();
          back.acquire();
        }));
  ended = true;
  there.release();
}

// ---- channels

// A value to another goroutine and one back: two sends and two receives, one of each waits.
void chan_unbuffered() {
  Chan<long> there, back;
  auto partner = magpie::spawn([&] {
    for (long value : there) back.send(value);
  });
  count({100, 300}, times([&] {
          there.send(1);
          back.recv();
        }));
  there.close();
}

// A send and a receive that find room and a value.
void chan_buffered() {
  Chan<long> channel(16);
  count({100, 300}, times([&] {
          channel.send(1);
          channel.recv();
        }));
}

// A producer and a consumer that wait for each other when the buffer is full or empty.
void chan_stream() {
  count({1280, 3840}, [](long n) {
    Chan<long> channel(128);
    magpie::go([channel, n] {
      for (long i = 0; i < n; ++i) channel.send(i);
    });
    for (long i = 0; i < n; ++i) channel.recv();
  });
}

void chan_try_recv_empty() {
  Chan<long> channel(1);
  count({100, 300}, times([&] { channel.try_recv(); }));
}

// A send, and a select over four channels that finds the value.
void select_ready() {
  std::vector<Chan<long>> c(4, Chan<long>(1));
  for (auto& each : c) each = Chan<long>(1);
  auto taken = [](std::optional<long>) {};
  count({100, 300}, times([&] {
          c[2].send(1);
          magpie::select(magpie::on_recv(c[0], taken), magpie::on_recv(c[1], taken),
                         magpie::on_recv(c[2], taken), magpie::on_recv(c[3], taken));
        }));
}

// A select over four channels that waits, and a send that wakes it; a yield beside it.
void select_wait() {
  std::vector<Chan<long>> c(4, Chan<long>());
  for (auto& each : c) each = Chan<long>();
  bool ended = false;
  auto partner = magpie::spawn([&] {
    while (!ended) c[1].send(1);
  });
  auto taken = [](std::optional<long>) {};
  count({100, 300}, times([&] {
          magpie::select(magpie::on_recv(c[0], taken), magpie::on_recv(c[1], taken),
                         magpie::on_recv(c[2], taken), magpie::on_recv(c[3], taken));
          magpie::yield();
        }));
  ended = true;
  c[1].recv();
}

// ---- locks

void mutex_free() {
  magpie::Mutex mutex;
  count({100, 300}, times([&] { std::lock_guard hold(mutex); }));
}

// A lock that waits, and an unlock that wakes: the partner wants the lock while main holds it. The
// yields that bring the partner there belong to the count.
void mutex_contended() {
  magpie::Mutex mutex;
  bool wanted = false, ended = false;
  auto partner = magpie::spawn([&] {
    for (;;) {
      while (!wanted && !ended) magpie::yield();
      if (ended) return;
      wanted = false;
      std::lock_guard hold(mutex);
    }
  });
  count({100, 300}, times([&] {
          wanted = true;
          mutex.lock();
          magpie::yield();
          mutex.unlock();
          magpie::yield();
        }));
  ended = true;
}

void rw_mutex_read() {
  magpie::RWMutex mutex;
  count({100, 300}, times([&] { std::shared_lock hold(mutex); }));
}

void rw_mutex_write() {
  magpie::RWMutex mutex;
  count({100, 300}, times([&] { std::lock_guard hold(mutex); }));
}

void wait_group_free() {
  magpie::WaitGroup group;
  count({100, 300}, times([&] {
          group.add(1);
          group.done();
          group.wait();
        }));
}

// A wait that waits: for one goroutine.
void wait_group_wait() {
  count({100, 300}, times([] {
          magpie::WaitGroup group;
          group.add(1);
          magpie::go([&group] { group.done(); });
          group.wait();
        }));
}

void once_done() {
  magpie::Once once;
  once.call([] {});
  count({100, 300}, times([&] { once.call([] {}); }));
}

// ---- time

void timer_stop() {
  count({100, 300}, times([] {
          magpie::Timer timer(1h);
          timer.stop();
        }));
}

// As timer_stop, beside 1,000 timers that stay.
void timer_stop_beside_many() {
  std::vector<magpie::Timer> others;
  for (int i = 0; i < 1000; ++i) others.emplace_back(std::chrono::seconds(600 + i));
  count({100, 300}, times([] {
          magpie::Timer timer(1h);
          timer.stop();
        }));
}

// A goroutine sleeps beside one that yields, so that the P never rests: how it rests depends on the
// clock. Time that has passed when the timer is looked at the first time: 1 ns.
void sleep() {
  bool ended = false;
  auto partner = magpie::spawn([&ended] {
    while (!ended) magpie::yield();
  });
  count({100, 300}, times([] { magpie::sleep_for(1ns); }));
  ended = true;
}

// ---- the network

struct Pair {
  UnixConn client, server;
};

std::string socket_name() { return "@magpie-paths-" + std::to_string(getpid()); }

Pair connected() {
  UnixListener listener = UnixListener::bind(socket_name());
  UnixConn client = UnixConn::connect(socket_name());
  return Pair{std::move(client), listener.accept()};
}

constexpr std::size_t kMessage = 64;
using Message = std::array<std::byte, kMessage>;

// Writes that find room. A socket's buffer takes more than 150 messages.
void net_write() {
  Pair pair = connected();
  Message message{};
  count({50, 150}, times([&] { pair.client.write(message); }), {}, [&](long n) {
    for (long i = 0; i < n; ++i) pair.server.read_exact(message);
  });
}

// Reads that find a message.
void net_read() {
  Pair pair = connected();
  Message message{};
  count({50, 150}, times([&] { pair.server.read(message); }), [&](long n) {
    for (long i = 0; i < n; ++i) pair.client.write(message);
  });
}

// A message to another goroutine and back: two writes, and two reads that wait for the poller.
void net_echo() {
  Pair pair = connected();
  auto echo = magpie::spawn([&server = pair.server] {
    Message message;
    while (std::size_t count = server.read(message)) server.write(std::span(message).first(count));
  });
  Message message{};
  count({100, 300}, times([&] {
          pair.client.write(message);
          pair.client.read_exact(message);
        }));
  pair.client.close();
}

// A request over a connection that stays, the client's write and read included.
void http_request() {
  magpie::http::Server server;
  server.handle("GET /", [](magpie::http::Request&, magpie::http::Response& response) {
    response.header("Content-Type", "text/plain");
    response.send("hello, world\n");
  });
  server.listen("unix:" + socket_name());
  auto serving = magpie::spawn([&server] { server.serve(); });
  UnixConn conn = UnixConn::connect(socket_name());
  constexpr std::string_view kRequest = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
  constexpr std::string_view kEnd = "hello, world\n";
  std::array<std::byte, 4096> buffer;
  count({50, 150}, times([&] {
          conn.write(std::as_bytes(std::span(kRequest)));
          std::size_t size = 0;
          do {
            std::size_t more = conn.read(std::span(buffer).subspan(size));
            if (more == 0) std::abort();
            size += more;
          } while (size < kEnd.size() ||
                   std::memcmp(&buffer[size - kEnd.size()], kEnd.data(), kEnd.size()) != 0);
        }));
  conn.close();
  server.shutdown(1s);
}

// ---- others

void context_cancel() {
  magpie::Context background = magpie::Context::background();
  count({100, 300}, times([&] { background.with_cancel().cancel(); }));
}

void local_value() {
  magpie::Local<long> local;
  local.set(1);
  long sum = 0;
  count({100, 300}, times([&] { sum += local.get(); }));
  if (sum == 0) std::abort();
}

void blocking_call() {
  count({100, 300}, times([] { magpie::blocking([] {}); }));
}

struct Path {
  const char* name;
  void (*run)();
};

constexpr Path kPaths[] = {
    {"go", go_only},
    {"go_and_end", go_and_end},
    {"spawn_and_join", spawn_and_join},
    {"yield", yield_in_turns},
    {"yield_alone", yield_alone},
    {"park_and_ready", park_and_ready},
    {"chan_unbuffered", chan_unbuffered},
    {"chan_buffered", chan_buffered},
    {"chan_stream", chan_stream},
    {"chan_try_recv_empty", chan_try_recv_empty},
    {"select_ready", select_ready},
    {"select_wait", select_wait},
    {"mutex", mutex_free},
    {"mutex_contended", mutex_contended},
    {"rw_mutex_read", rw_mutex_read},
    {"rw_mutex_write", rw_mutex_write},
    {"wait_group", wait_group_free},
    {"wait_group_wait", wait_group_wait},
    {"once", once_done},
    {"timer_stop", timer_stop},
    {"timer_stop_beside_1000", timer_stop_beside_many},
    {"sleep", sleep},
    {"net_write", net_write},
    {"net_read", net_read},
    {"net_echo", net_echo},
    {"http_request", http_request},
    {"context_cancel", context_cancel},
    {"local", local_value},
    {"blocking", blocking_call},
};

}  // namespace

int main(int argc, char** argv) {
  std::string_view wanted = argc == 2 ? argv[1] : "";
  if (wanted == "list") {
    for (const Path& path : kPaths) std::puts(path.name);
    return 0;
  }
  if (wanted == "build") {
    std::printf("compiler=%s\nlibc=%s\noptions=%s\n", MAGPIE_GATES_COMPILER, gnu_get_libc_version(),
                MAGPIE_GATES_OPTIONS);
    return 0;
  }
  const Path* path = std::find_if(std::begin(kPaths), std::end(kPaths),
                                  [wanted](const Path& each) { return each.name == wanted; });
  if (path == std::end(kPaths)) {
    std::fprintf(stderr, "usage: %s list, build, or the name of a path\n", argv[0]);
    return 2;
  }
  magpie::run(magpie::Options{.procs = 1, .preempt = false}, path->run);
}
