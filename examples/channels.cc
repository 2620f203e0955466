// channels.cc: a pipeline. Numbers are made, several workers square them, one goroutine adds up.
//
// A channel is a handle: copies name the same channel, so goroutines take it by value. Closing it
// tells the receivers that nothing more comes; only who sends may close it, and only once all
// senders are through.
#include <magpie/magpie.h>

#include <cstdio>

namespace {

magpie::Chan<int> numbers(int count) {
  magpie::Chan<int> out;
  magpie::go([out, count] {
    for (int i = 1; i <= count; ++i) out.send(i);
    out.close();
  });
  return out;
}

magpie::Chan<long> squares(const magpie::Chan<int>& in, int workers) {
  magpie::Chan<long> out(16);
  magpie::go([in, out, workers] {
    magpie::WaitGroup all;
    for (int i = 0; i < workers; ++i) {
      all.go([in, out] {
        for (int n : in) out.send(static_cast<long>(n) * n);
      });
    }
    all.wait();
    out.close();
  });
  return out;
}

// A buffered channel of free things: whoever finds it empty waits until somebody gives one back.
void share_connections() {
  magpie::Chan<int> free(2);
  for (int connection = 1; connection <= 2; ++connection) free.send(connection);
  magpie::WaitGroup all;
  for (int user = 1; user <= 6; ++user) {
    all.go([free, user] {
      int connection = *free.recv();
      std::printf("user %d has connection %d\n", user, connection);
      magpie::yield();
      free.send(connection);
    });
  }
  all.wait();
}

}  // namespace

int main() {
  return magpie::run([] {
    long sum = 0;
    for (long square : squares(numbers(1000), 4)) sum += square;
    std::printf("the sum of the first thousand squares is %ld\n", sum);
    share_connections();
    return sum == 333'833'500 ? 0 : 1;
  });
}
