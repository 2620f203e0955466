// outside_test.cc: the code of elements runs outside the runtime, where it may wait for anything.

#include <magpie/magpie.h>

#include <array>
#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "sched/core/m.h"
#include "sched/current.h"
#include "support/rt_test.h"

namespace magpie {
namespace {

using support::eventually;
using support::waiting_is;

bool is_inside() {
  sched::M* m = sched::current_m();
  return m != nullptr && m->grip.is_inside();
}

// Counts how often its code ran inside.
struct Witness {
  explicit Witness(int its) : value(its) { look(); }
  Witness(Witness&& other) noexcept : value(std::exchange(other.value, -1)) { look(); }
  Witness& operator=(Witness&& other) noexcept {
    value = std::exchange(other.value, -1);
    look();
    return *this;
  }
  ~Witness() { look(); }

  static void look() {
    if (is_inside()) ++inside;
    ++calls;
  }

  int value;
  static inline std::atomic<int> inside{0};
  static inline std::atomic<int> calls{0};
};

// The same for one that can be copied, and whose copies may throw.
struct Copied {
  explicit Copied(int its) : value(its) { Witness::look(); }
  Copied(const Copied& other) : value(other.value) { Witness::look(); }
  Copied& operator=(const Copied&) = default;
  ~Copied() { Witness::look(); }
  int value;
};

struct Large : Witness {
  using Witness::Witness;
  std::array<char, 1000> bytes{};
};

// Every way in and out: with a partner that waits, through the ring, from a full ring.
template <class T>
void pass_on_in_every_way() {
  for (std::size_t capacity : {0, 1, 3}) {
    Chan<T> c(capacity);
    auto sender = spawn([&] {
      for (int i = 0; i < 5; ++i) c.send(T(i));
    });
    ASSERT_TRUE(waiting_is(1));
    for (int i = 0; i < 5; ++i) EXPECT_EQ(c.recv()->value, i);
    sender.join();

    auto receiver = spawn([&] {
      for (int i = 0; i < 3; ++i) EXPECT_EQ(c.recv()->value, i);
    });
    ASSERT_TRUE(waiting_is(1));
    for (int i = 0; i < 3; ++i) c.send(T(i));
    receiver.join();
  }
}

template <class T>
void try_in_every_way() {
  for (std::size_t capacity : {0, 2}) {
    Chan<T> c(capacity);
    T value(1);
    while (c.try_send(value)) value = T(1);
    EXPECT_EQ(value.value, 1);
    while (c.try_recv()) {
    }
    auto sender = spawn([&] {
      for (std::size_t i = 0; i <= capacity; ++i) c.send(T(2));
    });
    ASSERT_TRUE(waiting_is(1));
    for (std::size_t i = 0; i <= capacity; ++i) EXPECT_EQ(c.try_recv()->value, 2);
    sender.join();
    auto receiver = spawn([&] { return c.recv()->value; });
    ASSERT_TRUE(waiting_is(1));
    EXPECT_TRUE(c.try_send(T(3)));
    EXPECT_EQ(receiver.join(), 3);
    c.close();
    EXPECT_THROW((void)c.try_send(value), ClosedChannel);
    EXPECT_EQ(value.value, 1);
  }
}

template <class T>
void select_in_every_way() {
  Chan<T> a, b(1), never, nobody;
  int got = 0;
  auto take = [&](std::optional<T> v) { got = v ? v->value : 0; };
  EXPECT_EQ(select(on_send(never, T(1)), on_send(b, T(2))), 1u);  // there is room
  EXPECT_EQ(select(on_recv(never), on_recv(b, take)), 1u);
  EXPECT_EQ(got, 2);
  auto receiver = spawn([&] { select(on_recv(a, take), on_recv(nobody)); });
  ASSERT_TRUE(waiting_is(1));
  select(on_send(a, T(3)), on_send(never, T(4)));  // a select meets a select
  receiver.join();
  EXPECT_EQ(got, 3);
  auto sender = spawn([&] { select(on_send(a, T(5)), on_send(never, T(6))); });
  ASSERT_TRUE(waiting_is(1));
  EXPECT_EQ(a.recv()->value, 5);
  sender.join();
  EXPECT_EQ(select(on_send(a, T(7)), otherwise()), 1u);
  EXPECT_EQ(select(on_send(a, T(7)), on_timeout(std::chrono::microseconds(1))), 1u);
  Selector selector;
  selector.send(b, T(8));
  EXPECT_EQ(selector.select(), 0u);
  EXPECT_EQ(b.recv()->value, 8);
}

template <class T>
void close_and_destroy_in_every_way() {
  Chan<T> c;
  auto sender = spawn([&] { EXPECT_THROW(c.send(T(1)), ClosedChannel); });
  auto selecting =
      spawn([&] { EXPECT_THROW(select(on_send(c, T(1)), on_send(c, T(2))), ClosedChannel); });
  ASSERT_TRUE(waiting_is(2));
  c.close();
  sender.join();
  selecting.join();
  Chan<T> left(4);
  for (int i = 0; i < 3; ++i) left.send(T(i));
  // The last handle goes with the goroutine that has it.
  go([last = std::exchange(left, Chan<T>::nil())] { EXPECT_EQ(last.size(), 3u); });
  EXPECT_TRUE(eventually([] { return num_goroutines() == 1; }));
}

template <class T>
void use_in_every_way() {
  Witness::inside = Witness::calls = 0;
  pass_on_in_every_way<T>();
  try_in_every_way<T>();
  select_in_every_way<T>();
  close_and_destroy_in_every_way<T>();
  EXPECT_GT(Witness::calls, 0);
  EXPECT_EQ(Witness::inside, 0) << "of " << Witness::calls;
}

RT_TEST(OutsideOnly, MovesAndDestructorsOfElementsRunOutside) { use_in_every_way<Witness>(); }
RT_TEST(OutsideOnly, SoDoCopies) { use_in_every_way<Copied>(); }
RT_TEST(OutsideOnly, SoDoTheMovesOfLargeElements) { use_in_every_way<Large>(); }

RT_TEST(OutsideOnly, PartsOfStandardTypesAreMovedOutsideToo) {
  Witness::inside = 0;
  Chan<std::pair<int, Witness>> pairs(1);
  Chan<std::optional<Witness>> optionals(1);
  Chan<std::variant<int, Witness>> variants(1);
  Chan<std::tuple<std::string, std::array<Witness, 1>>> tuples(1);
  pairs.send({1, Witness(1)});
  optionals.send(Witness(2));
  variants.send(Witness(3));
  tuples.send({"4", std::array{Witness(4)}});
  EXPECT_EQ(pairs.recv()->second.value, 1);
  EXPECT_EQ((*optionals.recv())->value, 2);
  EXPECT_EQ(std::get<Witness>(*variants.recv()).value, 3);
  EXPECT_EQ(std::get<1>(*tuples.recv())[0].value, 4);
  EXPECT_EQ(Witness::inside, 0);
}

// ---- a lock that a stopped goroutine holds

std::mutex lock;
std::atomic<bool> wanted{false};

// To move it takes the lock.
struct Locking {
  explicit Locking(int its) : value(its) {}
  Locking(Locking&& other) noexcept : value(other.value) {
    wanted = true;
    std::lock_guard hold(lock);
  }
  Locking& operator=(Locking&&) = delete;
  int value;
};

// A goroutine computes with the lock until somebody wants it. At one proc nobody does before that
// goroutine is stopped, and it does not go on unless the one who waits for the lock gives its P up.
RT_TEST(OutsideOnly, TheMoveOfAnElementMayWaitForALockThatAStoppedGoroutineHolds) {
  for (std::size_t capacity : {0, 1}) {
    Chan<Locking> c(capacity);
    for (int i = 0; i < 4; ++i) {
      wanted = false;
      std::atomic<bool> held{false};
      auto holder = spawn([&] {
        std::lock_guard hold(lock);
        held = true;
        while (!wanted) {
        }
      });
      auto sender = spawn([&] {
        if (!eventually([&] { return held.load(); })) return;
        c.send(Locking(i));
      });
      EXPECT_EQ(c.recv()->value, i);
      sender.join();
      holder.join();
    }
  }
}

// ---- what moves plainly

struct Job {
  std::string name;
  Chan<int> reply;
};

}  // namespace

template <>
inline constexpr bool moves_plainly<Job> = true;

namespace {

struct Closes {
  void operator()(int*) const {}
};
struct Remembers {
  void operator()(int*) const {}
  std::map<int, int> memory;
};

TEST(PlainMoves, TypesThatOnlyPassPointersOnMovePlainly) {
  static_assert(moves_plainly<int> && moves_plainly<std::chrono::steady_clock::time_point>);
  static_assert(moves_plainly<std::string> && moves_plainly<std::vector<Witness>>);
  static_assert(moves_plainly<std::unique_ptr<Witness>> && moves_plainly<std::shared_ptr<Witness>>);
  static_assert(moves_plainly<std::unique_ptr<int[]>> &&
                moves_plainly<std::unique_ptr<int, Closes>>);
  static_assert(moves_plainly<std::exception_ptr> && moves_plainly<std::function<void(int)>>);
  static_assert(moves_plainly<std::pair<int, std::string>>);
  static_assert(moves_plainly<std::tuple<std::optional<std::string>, Chan<void>, Chan<Witness>>>);
  static_assert(moves_plainly<std::variant<std::monostate, std::array<std::string, 2>>>);
  static_assert(moves_plainly<Job>);
}

TEST(PlainMoves, TypesThatMayDoMoreDoNot) {
  static_assert(!moves_plainly<Witness> && !moves_plainly<std::pair<int, Witness>>);
  static_assert(!moves_plainly<std::optional<Witness>> && !moves_plainly<const std::string>);
  static_assert(!moves_plainly<std::unique_ptr<int, Remembers>>);
  static_assert(!moves_plainly<std::map<int, int>>);  // its comparator may be anything
}

RT_TEST(PlainMoves, TypesThatAreDeclaredTravelWithoutABox) {
  static_assert(!detail::kCarriedOnHeap<Job> && !detail::kCarriedOnHeap<std::string>);
  Chan<Job> jobs(1);
  Chan<int> reply(1);
  jobs.send({std::string(100, 'x'), reply});
  std::optional<Job> job = jobs.recv();
  job->reply.send(7);
  EXPECT_EQ(reply.recv(), 7);
  EXPECT_EQ(job->name, std::string(100, 'x'));
}

}  // namespace
}  // namespace magpie
