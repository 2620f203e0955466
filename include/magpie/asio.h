// asio.h: goroutines wait for the asynchronous operations of Boost.Asio and of libraries on top of
// it.
//
//   std::size_t n = socket.async_read_some(buffer, magpie::use_goroutine);
//   std::size_t n = socket.async_read_some(buffer, magpie::use_goroutine[error]);
//   std::size_t n = socket.async_read_some(buffer, magpie::use_goroutine(context, socket));
//   std::size_t n = socket.async_read_some(buffer, magpie::use_goroutine(context));  // Boost 1.77
//
// Needs Boost.Asio 1.74 or newer, headers only, and is no part of magpie.h. Define
// MAGPIE_STANDALONE_ASIO before including it for the Asio that needs no Boost (namespace ::asio).
//
// An AsioRunner runs the io_context:
//
//   boost::asio::io_context io;
//   magpie::AsioRunner runner(io);
//
// A plain thread may run it instead. A goroutine of your own that calls io.run() needs blocking(),
// and a ThreadLock around that: Asio remembers the thread, and a handler that wakes a goroutine
// could otherwise continue on another thread.
//
// Asio's own rules stay: several goroutines that use one socket or timer at the same time need a
// strand. Nothing that the io_context runs itself, such as a handler, may wait with use_goroutine:
// the operation would wait for the handler. Stop the io_context before run() returns if goroutines
// may still wait: an operation may write to a buffer on a stack that run() gives back.
#pragma once

#include <magpie/detail/cxx20.h>

#include <concepts>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>

#include <magpie/blocking.h>
#include <magpie/context.h>
#include <magpie/go.h>
#include <magpie/semaphore.h>

#if defined(MAGPIE_STANDALONE_ASIO)
#include <asio/async_result.hpp>
#include <asio/error.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/version.hpp>
#define MAGPIE_ASIO ::asio
#define MAGPIE_ASIO_VERSION ASIO_VERSION
#define MAGPIE_ASIO_KIND over_standalone_asio
#else
#include <boost/asio/async_result.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/version.hpp>
#define MAGPIE_ASIO ::boost::asio
#define MAGPIE_ASIO_VERSION BOOST_ASIO_VERSION
#define MAGPIE_ASIO_KIND over_boost_asio
#endif

// 1: a single operation can be cancelled (Asio 1.19, Boost 1.77). Before, only all operations of an
// object together.
#if MAGPIE_ASIO_VERSION >= 101900
#define MAGPIE_ASIO_CANCELS_OPERATIONS 1
#if defined(MAGPIE_STANDALONE_ASIO)
#include <asio/cancellation_signal.hpp>
#else
#include <boost/asio/cancellation_signal.hpp>
#endif
#else
#define MAGPIE_ASIO_CANCELS_OPERATIONS 0
#endif

namespace magpie {
inline namespace MAGPIE_ASIO_KIND {

namespace asio_detail {

// error_code of Boost, or of the standard.
using AsioError = std::decay_t<decltype(MAGPIE_ASIO::error::make_error_code(
    MAGPIE_ASIO::error::operation_aborted))>;

// What ends an operation early.
struct NothingEnds {};
template <class Object>
struct ContextEndsObject {
  Context context;
  Object* object;
};
struct ContextEndsOperation {
  Context context;
};

// What one operation and the goroutine that waits for it share. The handler keeps it alive, too:
// run() may drop the goroutine.
template <class... Args>
struct AsioOperation {
  // What the handler was given: stored before completed.release(), read after completed.acquire().
  // Nullopt: Asio destroyed the handler without calling it.
  std::optional<std::tuple<std::decay_t<Args>...>> outcome;
  Semaphore completed{0};

  // Between the goroutine that takes its outcome and a cancellation that is on its way in the
  // io_context. It is held for a moment, and never over a wait.
  std::mutex mutex;
  bool is_over = false;  // guarded by mutex: what the cancellation would touch may be gone

#if MAGPIE_ASIO_CANCELS_OPERATIONS
  MAGPIE_ASIO::cancellation_signal signal;
#endif
};

template <class... Args>
class AsioHandler {
 public:
  using Operation = AsioOperation<Args...>;

  explicit AsioHandler(std::shared_ptr<Operation> operation) : operation_(std::move(operation)) {}
  AsioHandler(AsioHandler&&) noexcept = default;
  AsioHandler& operator=(AsioHandler&&) = delete;
  ~AsioHandler() {
    if (operation_ != nullptr) operation_->completed.release();
  }

  template <class... Given>
  void operator()(Given&&... given) {
    std::shared_ptr<Operation> operation = std::move(operation_);
    operation->outcome.emplace(std::forward<Given>(given)...);
    operation->completed.release();
  }

#if MAGPIE_ASIO_CANCELS_OPERATIONS
  using cancellation_slot_type = MAGPIE_ASIO::cancellation_slot;
  cancellation_slot_type get_cancellation_slot() const noexcept {
    return operation_->signal.slot();
  }
#endif

 private:
  std::shared_ptr<Operation> operation_;  // null: called, or moved from
};

// Calls cancel(operation) in the executor when the context ends, unless the operation is over.
template <class Operation, class Executor, class Cancel>
class AsioCanceller {
 public:
  AsioCanceller(const Context& context, std::shared_ptr<Operation> operation,
                const Executor& executor, Cancel cancel)
      : operation_(std::move(operation)),
        callback_(std::in_place, context.stop_token(), Post{operation_, executor, cancel}) {}
  // After this no cancellation touches the operation's object.
  ~AsioCanceller() {
    callback_.reset();
    std::lock_guard hold(operation_->mutex);
    operation_->is_over = true;
  }
  AsioCanceller(const AsioCanceller&) = delete;
  AsioCanceller& operator=(const AsioCanceller&) = delete;

 private:
  struct Post {
    std::shared_ptr<Operation> operation;
    Executor executor;
    Cancel cancel;
    void operator()() const noexcept {
      try {
        MAGPIE_ASIO::post(executor, [operation = operation, cancel = cancel] {
          std::lock_guard hold(operation->mutex);
          if (!operation->is_over) cancel(*operation);
        });
      } catch (const std::exception&) {  // memory is short: the operation ends by itself
      }
    }
  };

  std::shared_ptr<Operation> operation_;
  std::optional<std::stop_callback<Post>> callback_;
};

template <class... Values>
struct AsioReturn {
  using type = std::tuple<Values...>;
};
template <class Value>
struct AsioReturn<Value> {
  using type = Value;
};
template <>
struct AsioReturn<> {
  using type = void;
};

// Splits what a handler is given into its error, if the first is one, and its values.
template <class... Args>
struct AsioSignature {
  using Error = void;
  using Return = typename AsioReturn<Args...>::type;
};
template <class First, class... Rest>
requires(std::same_as<First, AsioError> ||
         std::same_as<First, std::exception_ptr>) struct AsioSignature<First, Rest...> {
  using Error = First;
  using Return = typename AsioReturn<Rest...>::type;
};

// Boost's error_code does not take the standard's.
#if !defined(MAGPIE_STANDALONE_ASIO)
inline void store_error(AsioError& to, std::error_code from) {
  to = from.category() == std::generic_category()
           ? AsioError(from.value(), boost::system::generic_category())
           : MAGPIE_ASIO::error::make_error_code(MAGPIE_ASIO::error::operation_aborted);
}
#endif
inline void store_error(std::error_code& to, std::error_code from) { to = from; }

}  // namespace asio_detail

// How a goroutine waits for an operation of Asio: pass use_goroutine as its completion token. The
// call starts the operation, blocks the goroutine until the operation has completed, and returns
// what a handler would be given: nothing, a value, or a std::tuple. An error is thrown as
// std::system_error; an exception that the operation passes on is rethrown. If the io_context is
// destroyed first, the error is operation_aborted. A plain thread may wait this way, too.
template <class Error, class End>
class GoroutineToken {
 public:
  constexpr GoroutineToken() = default;
  GoroutineToken(Error* error, End end) : error_(error), end_(std::move(end)) {}

  // As the token, but stores the error, or that there was none, in a std::error_code or Asio's own.
  // The call then returns what the operation gave beside it. It throws nothing, but for one case:
  // the io_context was destroyed and there is no value to return.
  template <class StoredError>
  requires std::is_void_v<Error>
  auto operator[](StoredError& error) const {
    return GoroutineToken<StoredError, End>(&error, end_);
  }

  // As the token, and ends with the context: if the context is over, the operation is not started.
  // When the context ends, object.cancel() is called in the object's executor; it cancels all
  // operations of the object. The goroutine waits until its operation has completed. Then the error
  // is the context's err(), unless the operation was done before. An operation that its object does
  // not cancel goes on to its end. Only one thread may run the object's executor, or a strand.
  template <class Object>
  requires std::same_as<End, asio_detail::NothingEnds>
  auto operator()(Context context, Object& object) const {
    using Its = asio_detail::ContextEndsObject<Object>;
    return GoroutineToken<Error, Its>(error_, Its{std::move(context), &object});
  }

#if MAGPIE_ASIO_CANCELS_OPERATIONS
  // The same for this operation alone, by its cancellation slot.
  template <std::same_as<Context> Its>
  requires std::same_as<End, asio_detail::NothingEnds>
  auto operator()(Its context) const {
    return GoroutineToken<Error, asio_detail::ContextEndsOperation>(error_, {std::move(context)});
  }
#endif

  // For async_result: starts the operation and waits.
  template <class... Args, class Initiation, class... InitArgs>
  auto start_and_wait(Initiation&& initiation, InitArgs&&... args) const {
    using Operation = asio_detail::AsioOperation<Args...>;
    using Signature = asio_detail::AsioSignature<std::decay_t<Args>...>;
    static_assert(
        std::is_void_v<Error> || std::same_as<typename Signature::Error, asio_detail::AsioError>,
        "magpie: this operation has no error_code: use use_goroutine without [error]");

    auto operation = std::make_shared<Operation>();
    auto start = [&] {
      std::forward<Initiation>(initiation)(asio_detail::AsioHandler<Args...>(operation),
                                           std::forward<InitArgs>(args)...);
    };
    if constexpr (std::same_as<End, asio_detail::NothingEnds>) {
      start();
      operation->completed.acquire();
      return outcome_of<Signature>(*operation, {});
    } else {
      std::error_code end = detail::end_of(end_.context);
      if (end) return without_outcome<Signature>(end);
      {
        auto executor = executor_of(initiation);
        start();
        asio_detail::AsioCanceller canceller(end_.context, operation, executor,
                                             canceller_of(operation));
        operation->completed.acquire();
      }
      return outcome_of<Signature>(*operation, end_.context.err());
    }
  }

 private:
  template <class Initiation>
  auto executor_of(const Initiation& initiation) const {
    if constexpr (!std::same_as<End, asio_detail::ContextEndsOperation>) {
      (void)initiation;
      return end_.object->get_executor();
    } else {
      static_assert(
          requires { initiation.get_executor(); },
          "magpie: this operation does not tell its executor, where it would be "
          "cancelled: use use_goroutine(context, object)");
      return initiation.get_executor();
    }
  }

  template <class Operation>
  auto canceller_of(const std::shared_ptr<Operation>&) const {
#if MAGPIE_ASIO_CANCELS_OPERATIONS
    if constexpr (std::same_as<End, asio_detail::ContextEndsOperation>) {
      return
          [](Operation& operation) { operation.signal.emit(MAGPIE_ASIO::cancellation_type::all); };
    } else
#endif
    {
      return [object = end_.object](Operation&) {
        try {
          object->cancel();
        } catch (const std::exception&) {  // a closed one has cancelled its operations
        }
      };
    }
  }

  // `end` is the context's.
  template <class Signature, class Operation>
  typename Signature::Return outcome_of(Operation& operation, std::error_code end) const {
    using Given = typename Signature::Error;
    auto aborted = MAGPIE_ASIO::error::make_error_code(MAGPIE_ASIO::error::operation_aborted);
    if (!operation.outcome)
      return without_outcome<Signature>(end ? end : static_cast<std::error_code>(aborted));
    auto& given = *operation.outcome;
    if constexpr (std::same_as<Given, std::exception_ptr>) {
      if (std::get<0>(given)) std::rethrow_exception(std::get<0>(given));
    } else if constexpr (std::same_as<Given, asio_detail::AsioError>) {
      asio_detail::AsioError error = std::get<0>(given);
      bool ended_early = end && error == aborted;
      if constexpr (!std::is_void_v<Error>) {
        *error_ = error;
        if (ended_early) asio_detail::store_error(*error_, end);
      } else if (error) {
        throw std::system_error(ended_early ? end : static_cast<std::error_code>(error),
                                "magpie: use_goroutine");
      }
    }
    constexpr std::size_t skipped = std::is_void_v<Given> ? 0 : 1;
    if constexpr (!std::is_void_v<typename Signature::Return>)
      return values_of<skipped>(std::move(given));
  }

  template <class Signature>
  typename Signature::Return without_outcome(std::error_code error) const {
    using Return = typename Signature::Return;
    if constexpr (!std::is_void_v<Error> &&
                  (std::is_void_v<Return> || std::default_initializable<Return>)) {
      asio_detail::store_error(*error_, error);
      if constexpr (!std::is_void_v<Return>) return Return{};
    } else {
      throw std::system_error(error, "magpie: use_goroutine");
    }
  }

  template <std::size_t skipped, class... All>
  static auto values_of(std::tuple<All...>&& all) {
    return [&]<std::size_t... i>(std::index_sequence<i...>) {
      if constexpr (sizeof...(i) == 1) {
        return std::get<skipped>(std::move(all));
      } else {
        return std::tuple(std::get<skipped + i>(std::move(all))...);
      }
    }
    (std::make_index_sequence<sizeof...(All) - skipped>());
  }

  Error* error_ = nullptr;  // void: throws
  End end_{};
};

inline constexpr GoroutineToken<void, asio_detail::NothingEnds> use_goroutine;

// Runs an io_context in a goroutine of its own, which keeps a thread for it.
class AsioRunner {
 public:
  // Throws as go().
  explicit AsioRunner(MAGPIE_ASIO::io_context& io)
      : work_(io.get_executor()), goroutine_(spawn([&io] {
          ThreadLock stay;
          blocking([&io] { io.run(); });
        })) {}
  // Blocks until the io_context has nothing left to do, or has been stopped, and rethrows nothing.
  ~AsioRunner() { work_.reset(); }
  AsioRunner(const AsioRunner&) = delete;
  AsioRunner& operator=(const AsioRunner&) = delete;

 private:
  MAGPIE_ASIO::executor_work_guard<MAGPIE_ASIO::io_context::executor_type> work_;
  JoinHandle<void> goroutine_;
};

}  // namespace MAGPIE_ASIO_KIND
}  // namespace magpie

// Asio calls this with the token, and returns what it returns.
#if defined(MAGPIE_STANDALONE_ASIO)
namespace asio {
#else
namespace boost::asio {
#endif
template <class Error, class End, class Nothing, class... Args>
class async_result<magpie::GoroutineToken<Error, End>, Nothing(Args...)> {
 public:
  using return_type = typename magpie::asio_detail::AsioSignature<std::decay_t<Args>...>::Return;

  template <class Initiation, class Token, class... InitArgs>
  static return_type initiate(Initiation&& initiation, Token&& token, InitArgs&&... args) {
    return token.template start_and_wait<Args...>(std::forward<Initiation>(initiation),
                                                  std::forward<InitArgs>(args)...);
  }
};
}
