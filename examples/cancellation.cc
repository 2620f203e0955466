// cancellation.cc: every call that waits takes the request's context, so one cancel ends whatever
// it waits for.
#include <magpie/magpie.h>

#include <atomic>
#include <cstdio>
#include <mutex>
#include <string>
#include <system_error>

using namespace magpie;
using namespace std::chrono_literals;

struct Shop {
  Semaphore cashiers{1};
  Mutex safe;
  Chan<std::string> orders;
};

// Plain code: what it waits for throws when the customer leaves, and the guards give back what it
// has.
void buy(Shop& shop, const Context& customer) {
  shop.cashiers.acquire(customer);
  struct Next {
    Semaphore& cashiers;
    ~Next() { cashiers.release(); }
  } next{shop.cashiers};
  shop.safe.lock(customer);
  std::lock_guard hold(shop.safe, std::adopt_lock);
  sleep_for(1ms, customer);  // counting the change
  shop.orders.send(customer, "coffee");
}

int main() {
  return run([] {
    Shop shop;

    // Nobody makes coffee: the first customer waits to be heard, the others for the cashier.
    Context patience = Context::background().with_timeout(20ms);
    std::atomic<int> left = 0;
    TaskGroup queue;
    for (int i = 0; i < 3; ++i) {
      queue.go([&] {
        try {
          buy(shop, patience);
        } catch (const std::system_error& error) {
          std::printf("a customer leaves: %s\n", error.what());
          left += error.code() == std::errc::timed_out;
        }
      });
    }
    queue.wait();

    // They have left nothing behind. Without exceptions:
    std::error_code error;
    Context short_visit = Context::background().with_timeout(5ms);
    std::string order = "tea";
    const bool sent = shop.orders.send(short_visit, std::move(order), error);
    if (!sent)
      std::printf("still has the order: %s (%s)\n", order.c_str(), error.message().c_str());

    auto barista = spawn([&] { return shop.orders.recv().value_or("nothing"); });
    buy(shop, Context::background().with_timeout(1h));
    const std::string served = barista.join();
    const bool is_free = shop.cashiers.try_acquire();
    std::printf("served: %s; the cashier is free: %s\n", served.c_str(), is_free ? "yes" : "no");
    return left == 3 && !sent && order == "tea" && served == "coffee" && is_free ? 0 : 1;
  });
}
