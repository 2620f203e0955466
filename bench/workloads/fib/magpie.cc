// fib: a goroutine for every call, down to the leaves: spawn fib(n - 1), call fib(n - 2), join.
// What is measured is the cost of fork and join themselves; nobody would compute Fibonacci numbers
// this way.
#include <magpie/magpie.h>

#include "fib.h"
#include "measure.h"

namespace {

long fib(long n) {
  if (n < 2) return n;
  auto first = magpie::spawn([n] { return fib(n - 1); });
  long second = fib(n - 2);
  return first.join() + second;
}

}  // namespace

int main(int argc, char** argv) {
  bench::Args args(argc, argv);
  int procs = static_cast<int>(args.number("procs", 1));
  magpie::run(magpie::Options{.procs = procs}, [&] { bench::measure_fib(args, fib); });
}
