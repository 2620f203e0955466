// fiber_procs.h: gives a Boost.Fiber program as many threads as the parameter procs says: one with
// its default scheduler, more with its work-stealing one.
#pragma once

#include <boost/fiber/algo/work_stealing.hpp>
#include <boost/fiber/condition_variable.hpp>
#include <boost/fiber/operations.hpp>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "measure.h"

namespace bench {

template <class F>
void with_fiber_procs(const Args& args, F f) {
  auto procs = static_cast<std::uint32_t>(args.number("procs", 1));
  if (procs == 1) {
    f();
    return;
  }
  using Algorithm = boost::fibers::algo::work_stealing;
  std::mutex mutex;
  boost::fibers::condition_variable_any ended;
  bool has_ended = false;
  std::vector<std::thread> threads;
  for (std::uint32_t i = 1; i < procs; ++i) {
    threads.emplace_back([&] {
      boost::fibers::use_scheduling_algorithm<Algorithm>(procs);
      std::unique_lock lock(mutex);
      ended.wait(lock, [&has_ended] { return has_ended; });  // its fibers run meanwhile
    });
  }
  boost::fibers::use_scheduling_algorithm<Algorithm>(procs);
  f();
  {
    std::lock_guard lock(mutex);
    has_ended = true;
  }
  ended.notify_all();
  for (auto& thread : threads) thread.join();
}

}  // namespace bench
