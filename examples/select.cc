// select.cc: waits for whatever comes first: a result, the request to stop, or the time.
#include <magpie/magpie.h>

#include <chrono>
#include <cstdio>
#include <optional>
#include <vector>

using namespace std::chrono_literals;

namespace {

// Sends numbers until it is told to stop, by closing `quit`.
void count(const magpie::Chan<int>& out, const magpie::Chan<void>& quit) {
  int i = 1;
  while (magpie::select_next(magpie::on_send(out, i, [&] { ++i; }),
                             magpie::on_recv(quit, [] { return false; }))) {
  }
}

// Adds up what comes until the context is over. A handler that takes an int sees values only.
int sum_until(const magpie::Context& context, const magpie::Chan<int>& in) {
  int sum = 0;
  while (magpie::select_next(magpie::on_recv(in, [&](int value) { sum += value; }),
                             magpie::on_done(context, [] { return false; }))) {
  }
  return sum;
}

std::optional<int> recv_within(const magpie::Chan<int>& in, std::chrono::milliseconds limit) {
  std::optional<int> result;
  magpie::select(magpie::on_recv(in, [&](std::optional<int> value) { result = value; }),
                 magpie::on_timeout(limit));
  return result;
}

// As many channels as there are: takes one value of each, in the order in which they come.
int sum_of_first(const std::vector<magpie::Chan<int>>& channels) {
  int sum = 0;
  magpie::Selector selector;
  for (const auto& channel : channels)
    selector.recv(channel, [&](std::optional<int> value) { sum += value.value_or(0); });
  for (std::size_t i = 0; i < channels.size(); ++i) selector.select();
  return sum;
}

}  // namespace

int main() {
  return magpie::run([] {
    magpie::Chan<int> numbers;
    magpie::Chan<void> quit;
    auto counter = magpie::spawn([=] { count(numbers, quit); });
    for (int i = 0; i < 3; ++i) std::printf("counted %d\n", *numbers.recv());
    quit.close();
    counter.join();

    magpie::select(magpie::on_recv(numbers),
                   magpie::otherwise([] { std::puts("nobody counts any more"); }));
    if (!recv_within(numbers, 20ms)) std::puts("and nobody begins within 20 ms");

    magpie::Context context = magpie::Context::background().with_cancel();
    auto adder = magpie::spawn([=] { return sum_until(context, numbers); });
    for (int i = 1; i <= 10; ++i) numbers.send(i);
    context.cancel();
    int added = adder.join();
    std::printf("the adder got %d\n", added);

    std::vector<magpie::Chan<int>> channels;
    for (int i = 1; i <= 10; ++i) {
      channels.emplace_back();
      magpie::go([channel = channels.back(), i] { channel.send(i); });
    }
    int sum = sum_of_first(channels);
    std::printf("ten channels brought %d\n", sum);
    return added == 55 && sum == 55 ? 0 : 1;
  });
}
