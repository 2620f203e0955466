// exit() in a goroutine, while others run, writes what was recorded until then.
// expect: ^the last words are in the trace$
// exit: 7
#include <magpie/magpie.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace {
std::string path() { return "exit_with_trace." + std::to_string(getpid()) + ".trace"; }
}  // namespace

int main() {
  setenv("MAGPIE_TRACE", path().c_str(), 1);
  std::atexit([] {  // registered first, so it runs last
    std::ifstream file(path(), std::ios::binary);
    std::string text((std::istreambuf_iterator<char>(file)), {});
    std::remove(path().c_str());
    if (text.find("my last words") != text.npos) std::puts("the last words are in the trace");
  });
  magpie::run(magpie::Options{.procs = 4}, [] {
    for (int i = 0; i < 10; ++i) {
      magpie::go([] {
        for (;;) magpie::yield();
      });
    }
    magpie::spawn([] {
      magpie::trace::log("end", "my last words");
      std::exit(7);
    }).join();
  });
}
