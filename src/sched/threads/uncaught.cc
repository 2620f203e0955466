#include "sched/threads/uncaught.h"

#include <cxxabi.h>
#include <pthread.h>

#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <typeinfo>
#include <utility>

#include <magpie/detail/caught.h>
#include <magpie/detail/task.h>
#include <magpie/go.h>
#include <magpie/runtime.h>

#include "base/check.h"
#include "base/guard.h"
#include "base/immortal.h"
#include "base/lock.h"
#include "context/switch.h"
#include "sched/core/m.h"
#include "sched/current.h"
#include "sched/dump/crash.h"

namespace magpie::sched {
namespace {

using Handler = std::function<void(std::exception_ptr)>;

base::Lock handler_lock;
[[maybe_unused]] const int handler_at_forks =  // as in base/per_process.h
    pthread_atfork([]() MAGPIE_ACQUIRES(handler_lock) { handler_lock.lock(); },
                   []() MAGPIE_RELEASES(handler_lock) { handler_lock.unlock(); },
                   []() MAGPIE_RELEASES(handler_lock) { handler_lock.unlock(); });

// Immortal, as goroutines may fail during exit().
constinit base::Immortal<std::shared_ptr<Handler>> chosen_handler MAGPIE_GUARDED_BY(handler_lock);

std::string describe_current_exception() {
  try {
    throw;
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    const std::type_info* type = abi::__cxa_current_exception_type();
    if (type == nullptr) return "an unknown exception";
    int status = 0;
    std::unique_ptr<char, decltype(&std::free)> readable(
        abi::__cxa_demangle(type->name(), nullptr, nullptr, &status), std::free);
    return std::string("an exception of type ") + (readable ? readable.get() : type->name());
  }
}

std::shared_ptr<Handler> current_handler() {
  base::Guard hold(handler_lock);
  return chosen_handler.value;
}

// Inside a handler: the exception is the current one.
[[noreturn]] void terminate_for(G* g) {
  std::string what = describe_current_exception();
  base::warn("goroutine %lu%s%s%s ended by an uncaught exception: %s",
             static_cast<unsigned long>(g->id), *g->name() != '\0' ? " (" : "", g->name(),
             *g->name() != '\0' ? ")" : "", what.c_str());
  report_stack_of_caller("threw it here:", nullptr);
  std::terminate();
}

// The frames of the thrower are still there.
bool has_handler_or_terminate(_Unwind_Exception* exception) {
  M* m = current_m();
  if (m == nullptr || m->current == nullptr) return false;  // in the child of a fork()
  if (current_handler() != nullptr) return true;
  abi::__cxa_begin_catch(exception);
  terminate_for(m->current);
}

void refuse_to_unwind() { (void)detail::caught(); }

void handle(_Unwind_Exception* exception) {
  abi::__cxa_begin_catch(exception);
  std::shared_ptr<Handler> mine = current_handler();
  if (mine == nullptr) terminate_for(current_m()->current);  // the program removed it meanwhile
  (*mine)(std::current_exception());
  abi::__cxa_end_catch();
}

}  // namespace

void catch_uncaught(void (*go_on)()) {
  context::set_first_frame({.catches = has_handler_or_terminate,
                            .refuse_to_unwind = refuse_to_unwind,
                            .take = handle,
                            .go_on = go_on});
}

}  // namespace magpie::sched

namespace magpie {

std::exception_ptr detail::caught() noexcept {
  std::exception_ptr error = std::current_exception();
  if (error == nullptr)
    base::fatal(
        "goroutine %lu: pthread_exit() or pthread_cancel() on a thread of the runtime, which "
        "others need too; let the goroutine return instead",
        static_cast<unsigned long>(goroutine_id()));
  return error;
}

void detail::warn_of_lost(std::exception_ptr error) noexcept {
  try {
    std::rethrow_exception(std::move(error));
  } catch (...) {
    std::string what;
    try {
      what = sched::describe_current_exception();
    } catch (...) {
      what = "no memory to say what";
    }
    base::warn("an exception is lost, since nobody joined its goroutine: %s", what.c_str());
  }
}

void on_uncaught(std::function<void(std::exception_ptr)> handler) {
  std::shared_ptr<sched::Handler> next;
  if (handler) next = std::make_shared<sched::Handler>(std::move(handler));
  base::Guard hold(sched::handler_lock);
  sched::chosen_handler.value.swap(next);
}

}  // namespace magpie
