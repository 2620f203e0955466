// allocation_test.cc: requests on a connection that has seen some like them allocate nothing.

#include <magpie/http.h>
#include <magpie/magpie.h>
#include <magpie/net/stream.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "support/rt_test.h"

namespace {
std::atomic<long> allocations{0};
}  // namespace

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
void* operator new(std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
#endif

namespace magpie::http {
namespace {

// Asks the same again and again; looks at the count of allocations after some requests and at the end.
class Asker final : public net::Stream {
 public:
  static constexpr int kWarm = 20, kAll = 1020;

  Asker(std::string request, long& counted) : request_(std::move(request)), counted_(counted) {}
  std::size_t read(std::span<std::byte> into) override {
    if (asked_ == kWarm) counted_ = -allocations.load();
    if (asked_ == kAll) counted_ += allocations.load();
    if (asked_++ == kAll) return 0;
    std::memcpy(into.data(), request_.data(), request_.size());
    return request_.size();
  }
  void write_parts(std::span<const std::span<const std::byte>> parts) override {
    for (auto part : parts) written += part.size();
  }
  void shutdown_write() override {}
  void close() noexcept override {}
  void set_read_deadline_ns(detail::DeadlineNs) noexcept override {}
  void set_write_deadline_ns(detail::DeadlineNs) noexcept override {}

  std::size_t written = 0;

 private:
  const std::string request_;
  long& counted_;
  int asked_ = 0;
};

RT_TEST(HttpAllocation, ASteadyConnectionAllocatesNothing) {
  Server server;
  server.handle("POST /users/{id}/posts/{post}", [](Request& req, Response& res) {
    res.status(201)
        .header("X-Agent", req.header("user-agent"))
        .header("X-Query", req.query("a-long-name-of-a-parameter"));
    EXPECT_EQ(req.param("post").size(), 40u);
    EXPECT_EQ(req.body().size(), 100u);
    res.write(req.path());
    res.write(req.body());
  });
  const std::string request =
      "POST /users/17/posts/" + std::string(40, 'p') +
      "?a-long-name-of-a-parameter=and-its-value-that-is-long HTTP/1.1\r\nHost: example.com\r\n" +
      "User-Agent: some agent that has a long name and a version\r\nContent-Length: 100\r\n\r\n" +
      std::string(100, 'b');
  long counted = -1;
  server.serve_connection(std::make_unique<Asker>(request, counted));
  // Others may allocate now and then: the watchman's goroutine, the test's own.
  EXPECT_LT(counted, 20);
}

}  // namespace
}  // namespace magpie::http
