// memory_stream.h: two ends of a connection in memory, for tests that decide what is read when.
//
// Each end can be told to give its reader a few bytes at a time. Deadlines and close() work as those of sockets.
#pragma once

#include <magpie/net/stream.h>
#include <magpie/sync.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <utility>

namespace magpie::support {

class MemoryStream final : public net::Stream {
 public:
  static constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

  // `at_once`: the most bytes that one read of either end returns; `capacity`: how many may be on their way.
  static std::pair<std::unique_ptr<MemoryStream>, std::unique_ptr<MemoryStream>> pair(
      std::size_t at_once = kNoLimit, std::size_t capacity = kNoLimit) {
    auto a = std::make_shared<Way>(), b = std::make_shared<Way>();
    a->at_once = b->at_once = at_once;
    a->capacity = b->capacity = capacity;
    return {std::unique_ptr<MemoryStream>(new MemoryStream(a, b)),
            std::unique_ptr<MemoryStream>(new MemoryStream(b, a))};
  }
  ~MemoryStream() override { close(); }

  std::size_t read(std::span<std::byte> into) override {
    Way& way = *in_;
    std::unique_lock hold(way.mutex);
    wait(hold, way, way.read_deadline, [&] { return !way.bytes.empty() || way.ended; });
    std::size_t n = std::min({into.size(), way.bytes.size(), way.at_once});
    std::memcpy(into.data(), way.bytes.data(), n);
    way.bytes.erase(0, n);
    way.changed.notify_all();
    return n;
  }

  void write_parts(std::span<const std::span<const std::byte>> parts) override {
    Way& way = *out_;
    std::unique_lock hold(way.mutex);
    ++way.writes;
    for (auto part : parts) {
      while (!part.empty()) {
        wait(hold, way, way.write_deadline,
             [&] { return way.bytes.size() < way.capacity || way.reader_gone; });
        if (way.reader_gone) throw std::system_error(std::make_error_code(std::errc::broken_pipe));
        std::size_t n = std::min(part.size(), way.capacity - way.bytes.size());
        way.bytes.append(reinterpret_cast<const char*>(part.data()), n);
        part = part.subspan(n);
        way.changed.notify_all();
      }
    }
  }

  void shutdown_write() override {
    std::lock_guard hold(out_->mutex);
    out_->ended = true;
    out_->changed.notify_all();
  }

  void close() noexcept override {
    {
      std::lock_guard hold(in_->mutex);
      in_->reader_gone = in_->reader_closed = true;
      in_->changed.notify_all();
    }
    std::lock_guard hold(out_->mutex);
    out_->ended = out_->writer_closed = true;
    out_->changed.notify_all();
  }

  void set_read_deadline_ns(detail::DeadlineNs deadline) noexcept override {
    set(*in_, &Way::read_deadline, deadline);
  }
  void set_write_deadline_ns(detail::DeadlineNs deadline) noexcept override {
    set(*out_, &Way::write_deadline, deadline);
  }

  // Calls of write_parts so far.
  int writes() const {
    std::lock_guard hold(out_->mutex);
    return out_->writes;
  }

 private:
  struct Way {
    Mutex mutex;
    CondVar changed;
    std::string bytes;
    bool ended = false;        // the writer has said so
    bool reader_gone = false;  // writing fails
    bool reader_closed = false, writer_closed = false;
    std::size_t at_once = kNoLimit;
    std::size_t capacity = kNoLimit;
    int writes = 0;
    detail::DeadlineNs read_deadline = detail::kNoDeadline;
    detail::DeadlineNs write_deadline = detail::kNoDeadline;
  };
  MemoryStream(std::shared_ptr<Way> in, std::shared_ptr<Way> out)
      : in_(std::move(in)), out_(std::move(out)) {}

  template <class Ready>
  void wait(std::unique_lock<Mutex>& hold, Way& way, const detail::DeadlineNs& deadline,
            Ready ready) {
    const bool reading = &way == in_.get();
    for (;;) {
      if (reading ? way.reader_closed : way.writer_closed)
        throw std::system_error(std::make_error_code(std::errc::operation_canceled));
      if (deadline <= detail::steady_now_ns())
        throw std::system_error(std::make_error_code(std::errc::timed_out));
      if (ready()) return;
      if (deadline == detail::kNoDeadline) {
        way.changed.wait(hold);
      } else {
        (void)way.changed.wait_until(
            hold, std::chrono::steady_clock::time_point(std::chrono::nanoseconds(deadline)));
      }
    }
  }
  static void set(Way& way, detail::DeadlineNs Way::*which, detail::DeadlineNs deadline) noexcept {
    std::lock_guard hold(way.mutex);
    way.*which = deadline;
    way.changed.notify_all();
  }

  const std::shared_ptr<Way> in_, out_;
};

}  // namespace magpie::support
