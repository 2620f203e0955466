// measure.h: what every benchmark program needs, and nothing of the runtime.
//
// A program takes its parameters as `key=value` words and prints its results the same way, one
// per line. bench/run starts one process per measurement and reads those lines, so a program can
// also be run, profiled and debugged by hand:  bench_yield procs=2 goroutines=100 yields=100000
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <string>

namespace bench {

class Args {
 public:
  Args(int argc, char** argv) : argc_(argc), argv_(argv) {}

  long number(const char* key, long fallback) const {
    const char* value = find(key);
    if (value == nullptr) return fallback;
    char* end = nullptr;
    long number = std::strtol(value, &end, 10);
    if (end == value || *end != '\0' || number < 1) {
      std::fprintf(stderr, "%s: %s must be a positive number, found \"%s\"\n", argv_[0], key,
                   value);
      std::exit(2);
    }
    return number;
  }

  std::string text(const char* key, const char* fallback) const {
    const char* value = find(key);
    return value != nullptr ? value : fallback;
  }

 private:
  const char* find(const char* key) const {
    std::size_t length = std::strlen(key);
    for (int i = 1; i < argc_; ++i) {
      if (std::strncmp(argv_[i], key, length) == 0 && argv_[i][length] == '=') {
        return argv_[i] + length + 1;
      }
    }
    return nullptr;
  }

  int argc_;
  char** argv_;
};

inline void report(const char* key, double value) { std::printf("%s=%.3f\n", key, value); }

inline std::int64_t now_ns() {
  using namespace std::chrono;
  return duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
}

// How long f() takes, in nanoseconds of wall time.
template <class F>
double time_ns(F f) {
  std::int64_t start = now_ns();
  f();
  return static_cast<double>(now_ns() - start);
}

// CPU time of this process so far, user and system.
inline double cpu_ns() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

// Memory of this process that is in RAM.
inline long resident_bytes() {
  long total_pages = 0, resident_pages = 0;
  std::ifstream("/proc/self/statm") >> total_pages >> resident_pages;
  return resident_pages * sysconf(_SC_PAGESIZE);
}

// A field of /proc/self/status that is given in kB: page tables are "VmPTE", they are not part of
// the resident set but are as real.
inline long status_bytes(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(field + ":")) return std::atol(line.c_str() + field.size() + 1) * 1024;
  }
  return 0;
}

// Pure computation of `rounds` steps, each waiting for the one before. A chain of dependent
// multiplications leaves most of the core idle, so two hardware threads of one core do not slow
// each other down and "twice as fast on two CPUs" stays a fair ideal.
[[gnu::noinline]] inline std::uint64_t busy_work(std::uint64_t rounds, std::uint64_t seed) {
  std::uint64_t x = seed | 1;
  asm volatile("" : "+r"(x));  // else a second call with the same arguments would be optimised away
  for (std::uint64_t i = 0; i < rounds; ++i) x = x * 6364136223846793005u + 1442695040888963407u;
  return x;
}

// Keeps the compiler from removing the computation of value.
template <class T>
inline void keep(const T& value) {
  asm volatile("" : : "r,m"(value) : "memory");
}

}  // namespace bench
