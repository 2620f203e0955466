// growth: what n of something cost: goroutines, timers, connections, waiters.
//
// Usage: growth list
//        growth KIND n=N [procs=P]
//
// Prints the time of one of the n, and the memory. Under callgrind it also makes callgrind write
// the instructions of main's thread, as gates/paths.cc does; `run` beside it checks by them that
// nothing grows faster than n log n.
#include <magpie/magpie.h>
#include <magpie/net.h>
#include <sys/resource.h>
#include <unistd.h>
#include <valgrind/callgrind.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "measure.h"

namespace {

using magpie::net::UnixConn;
using magpie::net::UnixListener;

// What is measured: from the call of measured() to its end.
struct Measured {
  double ns = 0;
  long bytes = 0;  // how much the resident set grew meanwhile
};

Measured measured(const std::function<void()>& body) {
  long bytes = bench::resident_bytes();
  pid_t thread = gettid();
  CALLGRIND_ZERO_STATS;
  CALLGRIND_TOGGLE_COLLECT;
  double ns = bench::time_ns(body);
  CALLGRIND_TOGGLE_COLLECT;
  if (RUNNING_ON_VALGRIND && gettid() != thread) {
    std::fprintf(stderr, "main moved to another thread: nothing was counted\n");
    std::_Exit(3);
  }
  return {ns, bench::resident_bytes() - bytes};
}

// n goroutines start and wait at a gate, and end when it opens.
Measured goroutines(long n) {
  return measured([n] {
    magpie::WaitGroup arrived, gate, all;
    arrived.add(static_cast<int>(n));
    all.add(static_cast<int>(n));
    gate.add(1);
    for (long i = 0; i < n; ++i) {
      magpie::go([&] {
        arrived.done();
        gate.wait();
        all.done();
      });
    }
    arrived.wait();
    gate.done();
    all.wait();
  });
}

// n timers, due at times that are no order, are made, and stopped in another order.
Measured timers(long n) {
  return measured([n] {
    std::vector<magpie::Timer> all;
    all.reserve(static_cast<std::size_t>(n));
    for (long i = 0; i < n; ++i) {
      all.emplace_back(std::chrono::hours(1) + std::chrono::milliseconds(i * 7919 % 1'000'003));
    }
    for (long i = 0; i < n; ++i) all[static_cast<std::size_t>(i * 104'729 % n)].stop();
    for (auto& timer : all) timer.stop();
  });
}

// n goroutines wait to receive from one channel; n values are sent.
Measured chan_waiters(long n) {
  magpie::Chan<long> channel;
  magpie::WaitGroup arrived, all;
  for (long i = 0; i < n; ++i) {
    arrived.add(1);
    all.go([&] {
      arrived.done();
      channel.recv();
    });
  }
  arrived.wait();
  magpie::yield();
  return measured([&] {
    for (long i = 0; i < n; ++i) channel.send(i);
    all.wait();
  });
}

// n goroutines wait in a select over the same two channels, of which one gets n values.
Measured select_waiters(long n) {
  magpie::Chan<long> used, unused;
  magpie::WaitGroup arrived, all;
  for (long i = 0; i < n; ++i) {
    arrived.add(1);
    all.go([&] {
      arrived.done();
      auto taken = [](std::optional<long>) {};
      magpie::select(magpie::on_recv(unused, taken), magpie::on_recv(used, taken));
    });
  }
  arrived.wait();
  magpie::yield();
  return measured([&] {
    for (long i = 0; i < n; ++i) used.send(i);
    all.wait();
  });
}

// n goroutines wait for one mutex, and get it one after the other.
Measured mutex_waiters(long n) {
  magpie::Mutex mutex;
  magpie::WaitGroup arrived, all;
  mutex.lock();
  for (long i = 0; i < n; ++i) {
    arrived.add(1);
    all.go([&] {
      arrived.done();
      std::lock_guard hold(mutex);
    });
  }
  arrived.wait();
  magpie::yield();
  return measured([&] {
    mutex.unlock();
    all.wait();
  });
}

void allow_descriptors() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// n connections, each with a goroutine that waits to read; one message to each, and back. Unix
// sockets: there are more of them than of TCP's ports.
Measured connections(long n) {
  allow_descriptors();
  std::string name = "@magpie-growth-" + std::to_string(getpid());
  UnixListener listener = UnixListener::bind(name);
  std::vector<UnixConn> clients;
  magpie::WaitGroup servers;
  for (long i = 0; i < n; ++i) {
    clients.push_back(UnixConn::connect(name));
    servers.go([conn = listener.accept()]() mutable {
      std::array<std::byte, 64> buffer;
      while (std::size_t count = conn.read(buffer)) conn.write(std::span(buffer).first(count));
    });
  }
  magpie::yield();
  Measured result = measured([&] {
    std::array<std::byte, 64> message{};
    for (UnixConn& client : clients) {
      client.write(message);
      client.read_exact(message);
    }
  });
  clients.clear();
  servers.wait();
  return result;
}

struct Kind {
  const char* name;
  Measured (*measure)(long n);
};

constexpr Kind kKinds[] = {
    {"goroutines", goroutines},         {"timers", timers},
    {"connections", connections},       {"chan_waiters", chan_waiters},
    {"select_waiters", select_waiters}, {"mutex_waiters", mutex_waiters},
};

}  // namespace

int main(int argc, char** argv) {
  std::string_view wanted = argc > 1 ? argv[1] : "";
  if (wanted == "list") {
    for (const Kind& kind : kKinds) std::puts(kind.name);
    return 0;
  }
  const Kind* kind = std::find_if(std::begin(kKinds), std::end(kKinds),
                                  [wanted](const Kind& each) { return each.name == wanted; });
  bench::Args args(argc, argv);
  long n = args.number("n", 0);
  if (kind == std::end(kKinds) || n < 1) {
    std::fprintf(stderr, "usage: %s list, or: KIND n=N [procs=P]\n", argv[0]);
    return 2;
  }
  magpie::Options options{.procs = static_cast<int>(args.number("procs", 1))};
  if (RUNNING_ON_VALGRIND) options.preempt = false;
  magpie::run(options, [&] {
    kind->measure(10);  // what the first use of the runtime costs is none of n
    CALLGRIND_ZERO_STATS;
    Measured found = kind->measure(n);
    std::string label = "operations=" + std::to_string(n);
    CALLGRIND_DUMP_STATS_AT(label.c_str());
    bench::report("ns_per_op", found.ns / static_cast<double>(n));
    bench::report("bytes_each", static_cast<double>(found.bytes) / static_cast<double>(n));
  });
}
