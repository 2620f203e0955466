// stuck.cc: the stuck program of the guide. Two transfers take two locks in different orders, and
// forty clients wait behind them; a clock ticks on, so no deadlock is reported. Prints "ready" when
// they are stuck, and ends with its standard input.
#include <magpie/debug_server.h>
#include <magpie/dump.h>
#include <magpie/magpie.h>
#include <magpie/net.h>

#include <chrono>
#include <cstdio>
#include <string>

namespace {

struct Account {
  magpie::Mutex mutex;
  int amount = 100;
};

[[gnu::noinline]] void transfer(Account& from, Account& to, magpie::WaitGroup& both_hold_one) {
  from.mutex.lock();
  both_hold_one.done();
  both_hold_one.wait();
  to.mutex.lock();
  --from.amount;
  ++to.amount;
}

[[gnu::noinline]] int read(Account& account) {
  account.mutex.lock();
  const int amount = account.amount;
  account.mutex.unlock();
  return amount;
}

}  // namespace

int main() {
  Account current, savings;  // they outlive run(), which drops what waits for them
  magpie::WaitGroup both_hold_one;
  both_hold_one.add(2);
  magpie::run([&] {
    const magpie::debug::Server server = magpie::debug::serve("127.0.0.1:0");
    magpie::go({.name = "clock"}, [] {
      for (;;) magpie::sleep_for(std::chrono::milliseconds(100));
    });
    magpie::go({.name = "transfer to savings"}, [&] { transfer(current, savings, both_hold_one); });
    magpie::go({.name = "transfer back"}, [&] { transfer(savings, current, both_hold_one); });
    both_hold_one.wait();
    for (int i = 0; i < 40; ++i) magpie::go({.name = "client"}, [&] { (void)read(current); });
    while (magpie::dump_goroutines().stuck_behind < 40) magpie::yield();
    std::puts("ready");
    std::fflush(stdout);
    magpie::net::wait_readable(0);
  });
}
