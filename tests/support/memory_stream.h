// memory_stream.h: two ends of a connection in memory, for tests that decide what is read when.
//
// Each end can be told to give its reader a few bytes at a time. Deadlines and close() work as
// those of sockets.
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

  // `at_once`: the most bytes that one read of either end returns; `capacity`: how many may be on
  // their way.
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

  // Bytes that have come and were not read.
  std::size_t unread() const { return unread_of(*in_); }
  std::size_t unread_by_peer() const { return unread_of(*out_); }

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
    TimePoint read_deadline = TimePoint::max();
    TimePoint write_deadline = TimePoint::max();
  };
  MemoryStream(std::shared_ptr<Way> in, std::shared_ptr<Way> out)
      : in_(std::move(in)), out_(std::move(out)) {}

  static std::size_t unread_of(Way& way) {
    std::lock_guard hold(way.mutex);
    return way.bytes.size();
  }

  template <class Ready>
  void wait(std::unique_lock<Mutex>& hold, Way& way, const TimePoint& deadline, Ready ready) {
    const bool reading = &way == in_.get();
    for (;;) {
      if (reading ? way.reader_closed : way.writer_closed)
        throw std::system_error(std::make_error_code(std::errc::operation_canceled));
      if (deadline <= std::chrono::steady_clock::now())
        throw std::system_error(std::make_error_code(std::errc::timed_out));
      if (ready()) return;
      (void)way.changed.wait_until(hold, TimePoint(deadline));
    }
  }
  void do_set_read_deadline(TimePoint time) noexcept override {
    set(*in_, &Way::read_deadline, time);
  }
  void do_set_write_deadline(TimePoint time) noexcept override {
    set(*out_, &Way::write_deadline, time);
  }
  static void set(Way& way, TimePoint Way::*which, TimePoint deadline) noexcept {
    std::lock_guard hold(way.mutex);
    way.*which = deadline;
    way.changed.notify_all();
  }

  const std::shared_ptr<Way> in_, out_;
};

}  // namespace magpie::support
