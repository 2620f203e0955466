// cond_var.cc: a queue of limited size, made of a Mutex and two condition variables.
#include <magpie/magpie.h>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <deque>
#include <mutex>
#include <optional>

namespace {

class Queue {
 public:
  explicit Queue(std::size_t places) : places_(places) {}

  void push(int value) {
    std::unique_lock hold(mutex_);
    not_full_.wait(hold, [&] { return values_.size() < places_; });
    values_.push_back(value);
    not_empty_.notify_one();
  }

  // Nothing, if nothing comes for that long.
  std::optional<int> pop(std::chrono::milliseconds patience) {
    std::unique_lock hold(mutex_);
    if (!not_empty_.wait_for(hold, patience, [&] { return !values_.empty(); })) return {};
    int value = values_.front();
    values_.pop_front();
    not_full_.notify_one();
    return value;
  }

 private:
  const std::size_t places_;
  magpie::Mutex mutex_;
  magpie::CondVar not_full_, not_empty_;
  std::deque<int> values_;  // guarded by mutex_
};

}  // namespace

int main() {
  using namespace std::chrono_literals;
  long sum = magpie::run([] {
    Queue queue(4);
    magpie::WaitGroup producers;
    for (int p = 0; p < 3; ++p) {
      producers.go([&queue] {
        for (int value = 1; value <= 100; ++value) queue.push(value);
      });
    }
    long total = 0;
    for (int received = 0; received < 300; ++received) total += queue.pop(60s).value_or(0);
    producers.wait();
    std::printf("the sum of 300 values is %ld\n", total);
    std::printf("another one: %s\n", queue.pop(5ms) ? "yes" : "none within 5 ms");
    return total;
  });
  return sum == 3 * 5050 ? 0 : 1;
}
