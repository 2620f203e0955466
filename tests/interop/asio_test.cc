// asio_test.cc: goroutines wait for Asio's operations. Compiled with Boost.Asio, and again with the
// standalone Asio (MAGPIE_STANDALONE_ASIO), which can cancel single operations in Debian 12.

#include <gtest/gtest.h>
#include <magpie/asio.h>
#include <magpie/magpie.h>

#if defined(MAGPIE_STANDALONE_ASIO)
#include <asio.hpp>
namespace asio_lib = asio;
#else
#include <boost/asio.hpp>
namespace asio_lib = boost::asio;
#endif

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "support/plain_thread.h"
#include "support/rt_test.h"
#include "support/test_length.h"

namespace magpie {
namespace {

using namespace std::chrono_literals;
using asio_lib::ip::tcp;
using AsioErrorCode = decltype(asio_lib::error::make_error_code(asio_lib::error::eof));
using support::eventually;

struct Loop {
  asio_lib::io_context& io() { return context; }
  asio_lib::io_context context{1};
  AsioRunner runner{context};
};

const tcp::endpoint kAnyPort(asio_lib::ip::address_v4::loopback(), 0);

struct Pair {
  explicit Pair(Loop& loop) : a(loop.io()), b(loop.io()) {
    tcp::acceptor acceptor(loop.io(), kAnyPort);
    a.connect(acceptor.local_endpoint());
    acceptor.accept(b);
  }
  tcp::socket a, b;
};

TEST(Asio, ThousandsOfGoroutinesTalkThroughOneIoContext) {
  constexpr int kClients = 2000, kAtATime = 100;
  std::atomic<int> right{0};
  run([&] {
    Loop loop;
    tcp::acceptor acceptor(loop.io(), kAnyPort);
    WaitGroup all;
    all.go([&] {
      for (int i = 0; i < kClients; ++i) {
        all.go([socket = acceptor.async_accept(use_goroutine)]() mutable {
          std::array<char, 64> buffer;
          for (;;) {
            AsioErrorCode error;
            std::size_t n = socket.async_read_some(asio_lib::buffer(buffer), use_goroutine[error]);
            if (error) return;
            asio_lib::async_write(socket, asio_lib::buffer(buffer.data(), n), use_goroutine);
          }
        });
      }
    });
    Semaphore places(kAtATime);
    for (int i = 0; i < kClients; ++i) {
      all.go([&, i] {
        places.acquire();
        {
          tcp::socket socket(loop.io());
          socket.async_connect(acceptor.local_endpoint(), use_goroutine);
          std::string sent = "goroutine " + std::to_string(i), echo(sent.size(), ' ');
          for (int k = 0; k < 2; ++k) {
            asio_lib::async_write(socket, asio_lib::buffer(sent), use_goroutine);
            std::size_t n = asio_lib::async_read(socket, asio_lib::buffer(echo), use_goroutine);
            if (n == sent.size() && echo == sent) ++right;
          }
        }
        places.release();
      });
    }
    all.wait();
  });
  EXPECT_EQ(right, 2 * kClients);
}

RT_TEST(Asio, AnErrorIsThrownOrStored) {
  Loop loop;
  std::uint16_t closed_port = tcp::acceptor(loop.io(), kAnyPort).local_endpoint().port();
  tcp::endpoint nobody(asio_lib::ip::address_v4::loopback(), closed_port);
  {
    tcp::socket socket(loop.io());
    try {
      socket.async_connect(nobody, use_goroutine);
      ADD_FAILURE() << "connected to nobody";
    } catch (const std::system_error& error) {
      EXPECT_EQ(error.code().value(), ECONNREFUSED) << error.what();
    }
  }
  {
    tcp::socket socket(loop.io());
    AsioErrorCode error;
    socket.async_connect(nobody, use_goroutine[error]);
    EXPECT_EQ(error, asio_lib::error::connection_refused);
  }
  {
    tcp::socket socket(loop.io());
    std::error_code error;
    socket.async_connect(nobody, use_goroutine[error]);
    EXPECT_EQ(error.value(), ECONNREFUSED);
  }
}

RT_TEST(Asio, TheValueComesWithTheError) {
  Loop loop;
  Pair pair(loop);
  asio_lib::write(pair.a, asio_lib::buffer("abc", 3));
  pair.a.close();
  std::array<char, 10> buffer;
  AsioErrorCode error;
  EXPECT_EQ(asio_lib::async_read(pair.b, asio_lib::buffer(buffer), use_goroutine[error]), 3u);
  EXPECT_EQ(error, asio_lib::error::eof);
}

RT_TEST(Asio, SuccessClearsTheError) {
  Loop loop;
  asio_lib::steady_timer timer(loop.io(), 1ms);
  AsioErrorCode error = asio_lib::error::eof;
  timer.async_wait(use_goroutine[error]);
  EXPECT_FALSE(error);
}

// Starts an operation that completes at once, with these values.
template <class Signature, class Token, class... Values>
auto completed_with(Token&& token, Values... values) {
  return asio_lib::async_initiate<Token, Signature>(
      [](auto handler, auto... given) { std::move(handler)(std::move(given)...); }, token,
      std::move(values)...);
}

RT_TEST(Asio, SeveralValuesAreATuple) {
  auto [number, text] =
      completed_with<void(AsioErrorCode, int, std::string)>(use_goroutine, AsioErrorCode(), 7, "x");
  EXPECT_EQ(number, 7);
  EXPECT_EQ(text, "x");
}

RT_TEST(Asio, ASignatureNeedNotHaveAnError) {
  EXPECT_EQ(*completed_with<void(std::unique_ptr<int>)>(use_goroutine, std::make_unique<int>(3)),
            3);
  completed_with<void()>(use_goroutine);
}

RT_TEST(Asio, AnExceptionOfTheOperationIsRethrown) {
  auto failure = std::make_exception_ptr(std::out_of_range("far"));
  EXPECT_THROW(completed_with<void(std::exception_ptr, int)>(use_goroutine, failure, 1),
               std::out_of_range);
  EXPECT_EQ(completed_with<void(std::exception_ptr, int)>(use_goroutine, std::exception_ptr(), 1),
            1);
}

RT_TEST(Asio, APlainThreadMayWaitToo) {
  Loop loop;
  asio_lib::steady_timer timer(loop.io(), 1ms);
  support::PlainThread([&] { timer.async_wait(use_goroutine); }).join();
}

RT_TEST(Asio, AnOperationOfAnIoContextThatIsDestroyedIsAborted) {
  auto io = std::make_unique<asio_lib::io_context>();  // nobody runs it
  auto waiter = spawn([&io = *io] {
    try {
      asio_lib::post(io, use_goroutine);
    } catch (const std::system_error& error) {
      return error.code().value();
    }
    return 0;
  });
  EXPECT_TRUE(support::waiting_is(1));
  io.reset();
  EXPECT_EQ(waiter.join(), ECANCELED);
}

RT_TEST(Asio, AContextThatIsOverStartsNothing) {
  Loop loop;
  Pair pair(loop);
  Context context = Context::background().with_cancel();
  context.cancel();
  char c = 0;
  asio_lib::write(pair.a, asio_lib::buffer("a", 1));
  AsioErrorCode error;
  EXPECT_EQ(pair.b.async_read_some(asio_lib::buffer(&c, 1), use_goroutine(context, pair.b)[error]),
            0u);
  EXPECT_EQ(error.value(), ECANCELED);
  EXPECT_EQ(c, 0);
  EXPECT_THROW(pair.b.async_read_some(asio_lib::buffer(&c, 1), use_goroutine(context, pair.b)),
               std::system_error);
  EXPECT_EQ(pair.b.async_read_some(asio_lib::buffer(&c, 1), use_goroutine), 1u);
}

RT_TEST(Asio, TheEndOfAContextEndsTheOperationAndIsItsError) {
  Loop loop;
  Pair pair(loop);
  Context context = Context::background().with_cancel();
  auto reader = spawn([&] {
    char c = 0;
    try {
      pair.b.async_read_some(asio_lib::buffer(&c, 1), use_goroutine(context, pair.b));
    } catch (const std::system_error& error) {
      return error.code();
    }
    return std::error_code();
  });
  EXPECT_TRUE(support::waiting_is(1));
  context.cancel();
  EXPECT_EQ(reader.join(), std::errc::operation_canceled);

  char c = 0;
  std::error_code error;
  Context short_one = Context::background().with_timeout(1ms);
  pair.b.async_read_some(asio_lib::buffer(&c, 1), use_goroutine(short_one, pair.b)[error]);
  EXPECT_EQ(error, std::errc::timed_out);
  // The socket is as good as before.
  asio_lib::write(pair.a, asio_lib::buffer("a", 1));
  EXPECT_EQ(pair.b.async_read_some(asio_lib::buffer(&c, 1), use_goroutine), 1u);
}

// The cancellation may find the operation done, and its object gone.
RT_TEST(Asio, ACancellationTouchesNothingAfterTheOperation) {
  Loop loop;
  for (int i = 0; i < support::scaled(200); ++i) {
    Context context = Context::background().with_cancel();
    auto canceller = spawn([&context] { context.cancel(); });
    AsioErrorCode error;
    {
      auto timer = std::make_unique<asio_lib::steady_timer>(loop.io(), 1us * (i % 50));
      timer->async_wait(use_goroutine(context, *timer)[error]);
    }
    if (error) {
      EXPECT_EQ(error.value(), ECANCELED);
    }
    canceller.join();
  }
}

#if MAGPIE_ASIO_CANCELS_OPERATIONS
RT_TEST(Asio, AContextEndsOneOperationOfAnObject) {
  Loop loop;
  asio_lib::strand<asio_lib::io_context::executor_type> strand(loop.io().get_executor());
  asio_lib::steady_timer timer(strand, 1h);
  Context one = Context::background().with_cancel(), other = Context::background().with_cancel();
  auto wait_with = [&](const Context& context) {
    std::error_code error;
    timer.async_wait(use_goroutine(context)[error]);
    return error;
  };
  auto first = spawn([&] { return wait_with(one); });
  EXPECT_TRUE(support::waiting_is(1));
  auto second = spawn([&] { return wait_with(other); });
  EXPECT_TRUE(support::waiting_is(2));
  one.cancel();
  EXPECT_EQ(first.join(), std::errc::operation_canceled);
  EXPECT_EQ(stats().waiting, 1u);
  other.cancel();
  EXPECT_EQ(second.join(), std::errc::operation_canceled);
}

RT_TEST(Asio, AContextEndsAComposedOperationAmidItsSteps) {
  Loop loop;
  Pair pair(loop);
  Context context = Context::background().with_cancel();
  std::array<char, 3> buffer;
  asio_lib::write(pair.a, asio_lib::buffer("ab", 2));
  EXPECT_TRUE(eventually([&] { return pair.b.available() == 2; }));
  auto reader = spawn([&] {
    std::error_code error;
    std::size_t n =
        asio_lib::async_read(pair.b, asio_lib::buffer(buffer), use_goroutine(context)[error]);
    EXPECT_EQ(error, std::errc::operation_canceled);
    return n;
  });
  EXPECT_TRUE(eventually([&] { return pair.b.available() == 0; }));
  EXPECT_TRUE(support::waiting_is(1));
  context.cancel();
  EXPECT_EQ(reader.join(), 2u);
}
#endif

}  // namespace
}  // namespace magpie
