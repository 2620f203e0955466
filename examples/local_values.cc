// local_values.cc: a variable of which every goroutine has its own.
//
// thread_local does not do this: a goroutine that blocks may go on on another thread, and a thread
// runs many goroutines. A Local belongs to the goroutine. It is made when first used and destroyed
// when the goroutine ends.
#include <magpie/magpie.h>

#include <atomic>
#include <cstdio>
#include <string>

namespace {

magpie::Local<std::string> request_name("(none)");

// Deep in some library, far from where the request began: no parameter had to be passed down.
std::string log_prefix() { return "[" + *request_name + "]"; }

bool handle_request(int number) {
  std::string name = "request " + std::to_string(number);
  request_name.set(name);
  for (int step = 0; step < 100; ++step) {
    magpie::yield();  // others run, with values of their own
    if (log_prefix() != "[" + name + "]") return false;
  }
  return true;
}

}  // namespace

int main() {
  std::atomic<int> right = 0;
  bool untouched = magpie::run([&] {
    magpie::WaitGroup all;
    for (int i = 0; i < 100; ++i) {
      all.go([&, i] { right += handle_request(i) ? 1 : 0; });
    }
    all.wait();
    return *request_name == "(none)";  // goroutine 1 never set its own
  });

  std::printf("%d of 100 goroutines saw only their own value\n", right.load());
  return right == 100 && untouched ? 0 : 1;
}
