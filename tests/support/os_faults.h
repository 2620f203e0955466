// os_faults.h: makes the system refuse memory or threads, while one of these lives.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <mutex>

#include "base/os.h"

namespace magpie::support {

enum class Refuse { everything, stacks, records };

// Refuses mappings of more than `largest` bytes.
class MapFaults {
 public:
  explicit MapFaults(Refuse what = Refuse::everything, std::size_t largest = 0)
      : real_(base::os().map) {
    refused_kind = what;
    limit = largest;
    refused = 0;
    base::os().map = map;
  }
  ~MapFaults() { base::os().map = real_; }
  MapFaults(const MapFaults&) = delete;
  MapFaults& operator=(const MapFaults&) = delete;

  static int refusals() { return refused; }
  // From now on everything is granted.
  static void relent() { limit = static_cast<std::size_t>(-1); }

 private:
  static bool concerns(int flags) {
    const bool for_stack = (flags & MAP_STACK) != 0;
    return refused_kind == Refuse::everything || for_stack == (refused_kind == Refuse::stacks);
  }

  static void* map(void* address, std::size_t length, int protection, int flags, int fd,
                   off_t offset) {
    if (concerns(flags) && length > limit) {
      ++refused;
      errno = ENOMEM;
      return MAP_FAILED;
    }
    return mmap(address, length, protection, flags, fd, offset);
  }

  static inline std::atomic<Refuse> refused_kind;
  static inline std::atomic<std::size_t> limit;
  static inline std::atomic<int> refused;
  decltype(base::Os::map)::Function* real_;
};

// Refuses every thread but the first `granted_first`, or all but these and each `granted_every`-th.
// The first that a run() asks for is sysmon, without which it does not begin.
class ThreadFaults {
 public:
  explicit ThreadFaults(int granted_every = 0, int granted_first = 0)
      : real_(base::os().create_thread) {
    every = granted_every;
    first = granted_first;
    asked = 0;
    base::os().create_thread = create;
  }
  ~ThreadFaults() { base::os().create_thread = real_; }
  ThreadFaults(const ThreadFaults&) = delete;
  ThreadFaults& operator=(const ThreadFaults&) = delete;

  static int requests() { return asked; }

 private:
  static int create(pthread_t* thread, const pthread_attr_t* attributes, void* (*entry)(void*),
                    void* argument) {
    const int number = ++asked;
    const bool granted = number <= first || (every != 0 && number % every == 0);
    if (!granted) return EAGAIN;
    return pthread_create(thread, attributes, entry, argument);
  }

  static inline std::atomic<int> every;
  static inline std::atomic<int> first;
  static inline std::atomic<int> asked;
  decltype(base::Os::create_thread)::Function* real_;
};

// Asks `may_be_made`, with the number of the request, before each new thread. False: the thread is
// refused. A run() asks for sysmon first, for the maker of threads next. A new thread calls
// `begins` before anything else.
class ThreadsAsk {
 public:
  explicit ThreadsAsk(
      bool (*may_be_made)(int number), void (*begins)(int number) = [](int) {})
      : real_(base::os().create_thread) {
    asked_first = may_be_made;
    called_first = begins;
    asked = 0;
    base::os().create_thread = create;
  }
  ~ThreadsAsk() { base::os().create_thread = real_; }
  ThreadsAsk(const ThreadsAsk&) = delete;
  ThreadsAsk& operator=(const ThreadsAsk&) = delete;

 private:
  struct Birth {
    void* (*entry)(void*);
    void* argument;
    int number;
  };

  static void* begin(void* argument) {
    Birth birth = *std::unique_ptr<Birth>(static_cast<Birth*>(argument));
    called_first.load()(birth.number);
    return birth.entry(birth.argument);
  }

  static int create(pthread_t* thread, const pthread_attr_t* attributes, void* (*entry)(void*),
                    void* argument) {
    const int number = ++asked;
    if (!asked_first.load()(number)) return EAGAIN;
    auto birth = std::make_unique<Birth>(Birth{entry, argument, number});
    int error = pthread_create(thread, attributes, begin, birth.get());
    if (error == 0) birth.release();
    return error;
  }

  static inline std::atomic<bool (*)(int)> asked_first;
  static inline std::atomic<void (*)(int)> called_first;
  static inline std::atomic<int> asked;
  decltype(base::Os::create_thread)::Function* real_;
};

// Every new thread needs a lock before it can begin, as one may need the allocator's.
class BirthsNeedLock {
 public:
  explicit BirthsNeedLock(std::mutex& needed) : real_(base::os().create_thread) {
    lock = &needed;
    base::os().create_thread = create;
  }
  ~BirthsNeedLock() { base::os().create_thread = real_; }
  BirthsNeedLock(const BirthsNeedLock&) = delete;
  BirthsNeedLock& operator=(const BirthsNeedLock&) = delete;

 private:
  struct Birth {
    void* (*entry)(void*);
    void* argument;
    std::mutex* lock;
  };

  static void* begin(void* argument) {
    std::unique_ptr<Birth> birth(static_cast<Birth*>(argument));
    { std::lock_guard hold(*birth->lock); }
    return birth->entry(birth->argument);
  }

  static int create(pthread_t* thread, const pthread_attr_t* attributes, void* (*entry)(void*),
                    void* argument) {
    auto birth = std::make_unique<Birth>(Birth{entry, argument, lock});
    int error = pthread_create(thread, attributes, begin, birth.get());
    if (error == 0) birth.release();
    return error;
  }

  static inline std::atomic<std::mutex*> lock;
  decltype(base::Os::create_thread)::Function* real_;
};

}  // namespace magpie::support
