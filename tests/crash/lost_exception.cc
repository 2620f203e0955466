// expect: magpie: an exception is lost, since nobody joined its goroutine: of a destructor
// expect: magpie: an exception is lost, since nobody joined its goroutine: of an assignment
// expect: magpie: an exception is lost, since nobody joined its goroutine: after detach
// expect: magpie: an exception is lost, since nobody joined its goroutine: before detach
// expect: magpie: an exception is lost, since nobody joined its goroutine: an exception of type int
// expect: ^5 lost, 0 of 2 that were joined
// exit: 0
//
// Compiled without NDEBUG. An exception that join() rethrows is not lost, nor is one that another
// join() could not wait for.
#include <magpie/magpie.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <string_view>

using namespace magpie;

namespace {

std::atomic<int> lost{0}, joined{0};

void count(std::string_view line) {
  std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data());
  if (line.find("is lost") == line.npos) return;
  ++lost;
  if (line.find("joined by us") != line.npos) ++joined;
}

JoinHandle<int> failing(std::string what, Chan<void> gate) {
  return spawn([what, gate]() -> int {
    gate.recv();
    throw std::runtime_error(what);
  });
}

bool throws(JoinHandle<int>& handle) {
  try {
    return handle.try_join_for(std::chrono::hours(1)) && false;
  } catch (const std::runtime_error&) {
    return true;
  }
}

}  // namespace

int main() {
  set_log_hook(count);
  const bool as_expected = run([] {
    Chan<void> open;
    open.close();
    { JoinHandle<int> dropped = failing("of a destructor", open); }
    JoinHandle<int> replaced = failing("of an assignment", open);
    replaced = failing("joined by us", open);
    bool threw = throws(replaced);

    Chan<void> gate;
    failing("after detach", gate).detach();
    gate.close();
    while (lost < 3) yield();

    Chan<void> ended;
    JoinHandle<int> late =
        spawn_closing(ended, []() -> int { throw std::runtime_error("before detach"); });
    ended.recv();
    while (stats().goroutines > 1) yield();
    late.detach();

    {
      JoinHandle<void> odd = spawn([] { throw 7; });
    }
    JoinHandle<int> last = failing("joined by us, too", open);
    threw = throws(last) && threw;
    return threw;
  });
  std::fprintf(stderr, "%d lost, %d of 2 that were joined\n", lost.load(), joined.load());
  return as_expected ? 0 : 1;
}
