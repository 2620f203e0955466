// baton.h: passes a turn between two goroutines or threads: give() in one, take() in the other.
#pragma once

#include <magpie/magpie.h>

namespace magpie::support {

class Baton {
 public:
  Baton() { turn_.add(1); }
  void give() { turn_.done(); }
  void take() {
    turn_.wait();
    turn_.add(1);
  }

 private:
  WaitGroup turn_;
};

}  // namespace magpie::support
