// A goroutine without a name is called by its number alone; one that is no std::exception by its
// type.
// expect: ^magpie: goroutine [0-9]+ ended by an uncaught exception: an exception of type zoo::Escape$
// exit: SIGABRT
#include <magpie/magpie.h>

namespace zoo {
struct Escape {};
}  // namespace zoo

int main() {
  magpie::run([] {
    magpie::WaitGroup never;
    never.add(1);
    magpie::go([] { throw zoo::Escape(); });
    never.wait();
  });
}
