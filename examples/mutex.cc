// mutex.cc: shared data under locks: a Mutex, an RWMutex for what is mostly read, a Semaphore as a
// limit, a Once.
#include <magpie/magpie.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <string>

namespace {

// Many look prices up, a few change them.
class Prices {
 public:
  int of(const std::string& name) const {
    std::shared_lock hold(mutex_);  // readers do not keep each other out
    auto found = prices_.find(name);
    return found == prices_.end() ? 0 : found->second;
  }
  void set(const std::string& name, int price) {
    std::lock_guard hold(mutex_);
    prices_[name] = price;
  }

 private:
  mutable magpie::RWMutex mutex_;
  std::map<std::string, int> prices_;
};

}  // namespace

int main() {
  bool as_expected = magpie::run([] {
    Prices prices;
    magpie::Once opened;
    magpie::Semaphore tills(3);  // at most three are served at a time
    magpie::Mutex mutex;         // guards the three numbers
    int served = 0, most_served = 0, earned = 0;

    magpie::WaitGroup customers;
    for (int i = 0; i < 1000; ++i) {
      customers.go([&, i] {
        opened.call([&] {  // by whoever comes first; the others wait until it is done
          prices.set("apple", 2);
          prices.set("pear", 3);
        });
        tills.acquire();
        {
          std::lock_guard hold(mutex);
          most_served = std::max(most_served, ++served);
        }
        int price = prices.of(i % 2 == 0 ? "apple" : "pear");
        magpie::yield();
        {
          std::lock_guard hold(mutex);
          --served;
          earned += price;
        }
        tills.release();
      });
    }
    customers.wait();
    std::printf("earned %d; served at the same time: at most %d\n", earned, most_served);
    return earned == 2500 && most_served <= 3;
  });
  return as_expected ? 0 : 1;
}
