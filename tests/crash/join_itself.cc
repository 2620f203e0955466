// A goroutine that destroys its own handle would wait for its own end: the program ends instead.
// expect: a goroutine cannot wait for its own end
// exit: SIGABRT
#include <magpie/magpie.h>

#include <memory>

int main() {
  magpie::run([] {
    auto owner = std::make_shared<magpie::JoinHandle<void>>();
    magpie::Chan<void> is_stored;
    *owner = magpie::spawn([owner, is_stored]() mutable {
      is_stored.recv();
      owner.reset();  // the last one
    });
    owner.reset();
    is_stored.send();
    magpie::sleep_for(std::chrono::hours(1));
  });
}
