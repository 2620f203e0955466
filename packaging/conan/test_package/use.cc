#include <magpie/magpie.h>

int main() {
  return magpie::run([] { return magpie::spawn([] { return 42; }).join() == 42 ? 0 : 1; });
}
