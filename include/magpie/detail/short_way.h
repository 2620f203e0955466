// short_way.h: locks and unlocks that need nobody are done in place, and the runtime can close this
// short way. Not part of the API.
//
// A goroutine that only takes what is free never enters the runtime, so it would keep its run()
// from ending. Therefore the numbers that the short ways compare with, or leave behind, are
// variables: a load costs no more instructions than a constant. When main has returned and some
// goroutine still runs, sysmon changes them. Then unlock() of a Mutex or an RWMutex, and release()
// of a Semaphore, take the long way, on all threads, until run() ends. The goroutine is left behind
// there, as at any other call, when it has given the thing back. A late look at them only delays
// that.
#pragma once

#include <magpie/detail/cxx20.h>

#include <atomic>
#include <cstdint>

#include <magpie/detail/api.h>

namespace magpie::detail {

// Sysmon writes, everybody reads. A cache line of its own: nothing that is written often is near.
struct alignas(64) ShortWay {
  // What lock() makes of a free one; and, when closed, what is never given back the short way:
  // [mutex] HELD and CALL, [rw-mutex] WRITER and WRITER with CALL.
  static constexpr std::uint32_t kMutexHeld = 1, kMutexHeldClosed = 2;
  static constexpr std::uint64_t kWriter = std::uint64_t{1} << 32;
  static constexpr std::uint64_t kWriterClosed = kWriter | std::uint64_t{1} << 33;
  std::atomic<std::uint32_t> mutex_held{kMutexHeld};  // atomic, a hint: both are right
  std::atomic<std::uint64_t> writer{kWriter};         // atomic, a hint: both are right

  // unlock_shared(): with that many readers left, or more, it has to look further.
  static constexpr std::uint64_t kNoReaders = kWriter - 1;
  std::atomic<std::uint64_t> reader_limit{kNoReaders};  // atomic, a hint: a late look delays

  // release(): if there would be more units than this, it has to look further.
  static constexpr std::int64_t kMostUnits = (std::int64_t{1} << 62) - 1;
  std::atomic<std::int64_t> most_units{kMostUnits};  // atomic, a hint: a late look delays

  bool is_closed() const noexcept {
    return mutex_held.load(std::memory_order_relaxed) != kMutexHeld;
  }
};

MAGPIE_API extern ShortWay short_way;

}  // namespace magpie::detail
