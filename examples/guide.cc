// guide.cc: the pieces of code that the guide shows (docs/guide/), as one program.
#include <magpie/magpie.h>
#include <magpie/net.h>
#include <magpie/process.h>
#include <magpie/profile.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace magpie;
using namespace std::chrono_literals;

namespace {

void expect(bool what, const char* text) {
  if (what) return;
  std::printf("not so: %s\n", text);
  std::exit(1);
}

// ---- goroutines

std::atomic<int> worked{0};
void work(int) { ++worked; }

int first_steps() {
  return magpie::run([] {
    magpie::WaitGroup all;
    for (int i = 0; i < 1000; ++i) all.go([i] { work(i); });
    all.wait();
    return 0;
  });
}

int serve() { return 7; }

int with_options() {
  const magpie::Options options{.procs = 4, .stack_size = 64 * 1024};
  return magpie::run(options, [] { return serve(); });
}

int of_a_size() {
  JoinHandle<int> parser = spawn(GoOptions{.name = "parser", .stack_size = 1 << 20}, [] {
    char text[600'000];  // more than a usual stack
    text[sizeof text - 1] = 1;
    return static_cast<int>(text[sizeof text - 1]);
  });
  return parser.join();
}

// ---- locks

void share(int price) {
  magpie::Mutex mutex;
  int earned = 0;  // guarded by mutex
  WaitGroup all;
  for (int i = 0; i < 100; ++i) {
    all.go([&] {
      std::lock_guard hold(mutex);
      earned += price;
    });
  }
  all.wait();
  expect(earned == 100 * price, "all that was earned is there");
}

int wait_for_a_change() {
  Mutex mutex;
  CondVar not_empty;
  std::deque<int> values;
  go([&] {
    std::lock_guard hold(mutex);
    values.push_back(5);
    not_empty.notify_one();
  });
  std::unique_lock hold(mutex);
  not_empty.wait(hold, [&] { return !values.empty(); });
  return values.front();
}

// ---- blocking calls

std::string read_line(std::FILE* file) {
  char line[100];
  return std::fgets(line, sizeof line, file) == nullptr ? std::string() : std::string(line);
}

std::string first_line(std::FILE* file) {
  std::string line = magpie::blocking([&] { return read_line(file); });
  return line;
}

// ---- time and cancellation

struct Row {
  int id;
};

std::error_code ask(Chan<Row> answer) {
  Context request = Context::background().with_value("user", "Ada").with_timeout(5ms);
  std::optional<Row> row;
  select(on_recv(answer, [&](std::optional<Row> came) { row = came; }), on_done(request));
  if (!row) return request.err();  // timed_out, or operation_canceled
  return {};
}

std::error_code pass_on(const Context& request, Chan<Row> orders, Chan<Row> rows, Mutex& mutex) {
  Row order{1};
  // throws std::system_error: the code is request.err(), the text names the call
  orders.send(request, std::move(order));
  std::optional<Row> row = rows.recv(request);  // nullopt: closed
  std::error_code error;
  if (!mutex.lock(request, error)) return error;  // the same without exceptions
  std::lock_guard hold(mutex, std::adopt_lock);
  return row ? error : std::make_error_code(std::errc::no_message);
}

using Url = std::string;
std::atomic<int> fetched{0};
void fetch(const Url&, const Context&) { ++fetched; }

void fetch_all(const std::vector<Url>& urls) {
  TaskGroup group;
  group.set_limit(8);
  for (const Url& url : urls) group.go([&](const Context& context) { fetch(url, context); });
  group.wait();  // all have ended; throws the first exception
}

// ---- signals

std::atomic<int> reloads{0};
void reload() { ++reloads; }

// A SIGHUP reads the configuration again.
void until_told(const Signals& signals) {
  for (int signal : signals.channel()) {
    if (signal != SIGHUP) break;
    reload();
  }
}

void end_with(const Signals& signals, const Context& context, Chan<int> results) {
  int sum = 0;
  while (select_next(on_recv(signals.channel(), [&](int) { context.cancel(); }),
                     on_recv(results, [&](int result) { sum += result; }),
                     on_done(context, [] { return false; }))) {
  }
}

// ---- the network

void serve_echo(net::TcpListener& listener) {
  for (;;) {
    go([conn = listener.accept()]() mutable {
      std::byte buffer[4096];
      while (std::size_t count = conn.read(buffer)) conn.write(std::span(buffer, count));
    });
  }
}

std::size_t without_exceptions(net::TcpConn& conn, std::span<std::byte> buffer) {
  std::error_code error;
  std::size_t count = conn.read(buffer, error);
  if (error == std::errc::connection_reset) return 0;  // happens
  return count;
}

std::size_t ask_backend(const Context& request, const std::string& address,
                        std::string_view question, std::span<std::byte> answer) {
  Context ctx = request.with_timeout(5s);
  net::TcpConn backend = net::TcpConn::connect(address, ctx);
  backend.write(question, ctx);
  std::size_t count = backend.read(answer, ctx);
  return count;
}

int listeners_of_systemd() {
  std::vector<net::TcpListener> web;
  for (const net::InheritedSocket& socket : net::inherited_sockets())
    if (socket.name == "web") web.push_back(net::TcpListener::adopt(socket.fd));
  return static_cast<int>(web.size());
}

void talk(net::Stream& conn) {
  net::BufferedReader reader(conn);
  net::BufferedWriter writer(conn);
  for (std::string_view line : reader.lines(4096)) {  // a line of more than 4096 bytes is an error
    writer.write("you said ");
    writer.write(line);
    writer.write("\n");
    if (reader.buffered().empty()) writer.flush();  // before waiting for the peer
  }
}

std::string sorted(const std::string& text) {
  Process sort = Process::spawn({"sort", "-u"}, {.input = Stdio::pipe(), .output = Stdio::pipe()});
  Process::Output all = sort.communicate(text);  // writes, reads both outputs, waits
  if (!all.status.success()) throw std::runtime_error("sort: " + all.status.to_string());
  return all.output;
}

void use_the_network() {
  net::TcpListener listener = net::TcpListener::bind("127.0.0.1:0");  // 0: any port that is free
  const std::string address = listener.local_address().to_string();
  JoinHandle<void> serving = spawn([&] {
    try {
      serve_echo(listener);
    } catch (const std::system_error&) {  // closed
    }
  });
  std::byte answer[100];
  expect(ask_backend(Context::background(), address, "how?", answer) == 4, "an echo");
  net::TcpConn conn = net::TcpConn::connect(address);
  conn.write("hello");
  expect(without_exceptions(conn, answer) == 5, "another echo");
  listener.close();
  serving.join();

  net::TcpListener lines = net::TcpListener::bind("127.0.0.1:0");
  JoinHandle<void> talking = spawn([&] {
    net::TcpConn peer = lines.accept();
    talk(peer);
  });
  net::TcpConn speaker = net::TcpConn::connect(lines.local_address().to_string());
  speaker.write("good morning\n");
  std::byte said[22];
  speaker.read_exact(said);
  speaker.shutdown_write();
  talking.join();
  expect(listeners_of_systemd() == 0, "systemd gave no socket");
  expect(sorted("b\na\nb\n") == "a\nb\n", "sorted");
}

// ---- profiles

void serve_for_a_while() { sleep_for(2ms); }

std::size_t profile_waits() {
  magpie::profile::start();  // about one wait for each 10 us of waiting
  serve_for_a_while();
  magpie::profile::stop();
  const std::string waits = magpie::profile::pprof();
  const std::string locks = magpie::profile::pprof(magpie::profile::Waits::locks);
  return waits.size() + locks.size();
}

int answer_or_nothing() {
  Chan<void> ended;
  JoinHandle<int> answer = spawn_closing(ended, [] { return serve(); });
  int result = 0;
  select(on_recv(ended, [&](bool) { result = answer.join(); }), on_timeout(1h));
  return result;
}

// ---- tests

// Run it with MAGPIE_DEBUG=chaos=1, chaos=2, ...: it meets orders that are rare otherwise.
bool transfers_keep_the_sum() {
  Mutex mutex;
  int here = 100, there = 0;
  WaitGroup all;
  for (int i = 0; i < 50; ++i) {
    all.go([&] {
      std::lock_guard hold(mutex);
      --here;
      yield();  // another goroutine may run now, on any thread
      ++there;
    });
  }
  all.wait();
  return here + there == 100;
}

void use_all() {
  share(3);
  expect(wait_for_a_change() == 5, "a value came");
  expect(of_a_size() == 1, "a large stack");
  expect(answer_or_nothing() == 7, "the end of a goroutine, in select");
  std::FILE* file = std::fopen("/proc/self/status", "r");
  expect(file != nullptr && first_line(file).starts_with("Name:"), "a line");
  std::fclose(file);
  expect(ask(Chan<Row>()) == std::errc::timed_out, "nobody answers");
  Chan<Row> orders(1), rows(1);
  rows.send(Row{2});
  Mutex mutex;
  expect(!pass_on(Context::background().with_cancel(), orders, rows, mutex), "passed on");
  fetch_all({"a", "b", "c"});
  expect(fetched == 3, "all fetched");
  {
    Signals signals({SIGHUP, SIGTERM});
    std::raise(SIGHUP);
    while (signals.channel().size() == 0) yield();
    std::raise(SIGTERM);
    until_told(signals);
    expect(reloads == 1, "read again");
    std::raise(SIGTERM);
    end_with(signals, Context::background().with_cancel(), Chan<int>());
  }
  use_the_network();
  expect(profile_waits() > 0, "profiles");
  expect(transfers_keep_the_sum(), "the sum");
}

}  // namespace

int main() {
  expect(first_steps() == 0 && worked == 1000, "a thousand goroutines");
  expect(with_options() == 7, "options");
  run(use_all);
  std::puts("the guide is right");
}
