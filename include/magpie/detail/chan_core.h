// chan_core.h: the channel without its element type, as Chan<T> sees it. Not part of the API.
#pragma once

#include <magpie/detail/cxx20.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include <magpie/detail/api.h>
#include <magpie/detail/with_context.h>

namespace magpie::detail {

// How a channel handles its elements. Without `move` it copies the bytes, and the source counts as
// gone. Without `destroy` there is nothing to destroy. The channel calls `move` under its lock, and
// `destroy` there only for elements that were moved from; so only types that move plainly have
// these functions. Values that are still in the ring when the last handle goes are destroyed
// outside the lock.
struct ElementKind {
  std::size_t size;  // 0: signals without a value
  std::size_t alignment;
  void (*move)(void* to, void* from) noexcept;  // constructs *to; *from stays, moved from
  void (*destroy)(void* element) noexcept;
};

// What all handles of a channel share.
struct ChanCore {
  std::atomic<std::uint64_t> references{1};  // atomic, references
};

// Selects the constructor of the nil channel. Nothing converts to it: a literal 0 is a capacity.
struct NilTag {
  explicit NilTag() = default;
};

// Looks after a time at which the channel is to be closed: for receivers that no timer does it for.
class ChanWatch {
 public:
  virtual ~ChanWatch() = default;
  // Until when the caller may wait before it calls notice(). kNoDeadline: it need not.
  virtual DeadlineNs deadline() const = 0;
  // Closes the channel if the time has come.
  virtual void notice() = 0;
};

// A channel with one reference. Throws std::length_error for a capacity that exceeds the address
// space, std::bad_alloc.
MAGPIE_API ChanCore* make_channel(const ElementKind& kind, std::size_t capacity);
void set_watch(ChanCore* core, std::unique_ptr<ChanWatch> watch) noexcept;  // before it is shared
MAGPIE_API void destroy_channel(ChanCore* core) noexcept;  // the last reference is gone

inline void share(ChanCore* core) noexcept {
  if (core != nullptr) core->references.fetch_add(1, std::memory_order_relaxed);
}
inline void drop(ChanCore* core) noexcept {
  if (core == nullptr) return;
  // acquire: with the release of the others below; then nobody is left to copy a handle
  if (core->references.load(std::memory_order_acquire) == 1 ||
      core->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    destroy_channel(core);
  }
}

enum class ChanResult : unsigned char {
  done,
  closed,   // sent nothing, or nothing is left to receive
  refused,  // would have to wait
};

// A null core is the nil channel. `value` is moved from if the result is done, else untouched.
// `slot` is raw memory, in which an element is constructed if the result is done.
MAGPIE_API ChanResult send(ChanCore* core, void* value);
MAGPIE_API ChanResult try_send(ChanCore* core, void* value);
MAGPIE_API ChanResult receive(ChanCore* core, void* slot);
MAGPIE_API ChanResult try_receive(ChanCore* core, void* slot);

// The same within a limit. Refused: the limit was reached first.
MAGPIE_API ChanResult send(ChanCore* core, void* value, const WaitLimit& limit);
MAGPIE_API ChanResult receive(ChanCore* core, void* slot, const WaitLimit& limit);

// True if try_send would be refused. Takes no lock.
MAGPIE_API bool refuses_send(const ChanCore* core) noexcept;

// Throws ClosedChannel; std::logic_error for the nil channel.
MAGPIE_API void close(ChanCore* core);
bool try_close(ChanCore* core) noexcept;  // false: it was closed, or it is the nil channel
MAGPIE_API std::size_t size(const ChanCore* core) noexcept;
MAGPIE_API std::size_t capacity(const ChanCore* core) noexcept;
MAGPIE_API bool is_closed(const ChanCore* core) noexcept;

[[noreturn]] MAGPIE_API void throw_sent_on_closed();
[[noreturn]] MAGPIE_API void throw_received_from_closed();

}  // namespace magpie::detail
