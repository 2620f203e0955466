#include <magpie/process.h>

#include <string.h>

#include <atomic>
#include <exception>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <magpie/go.h>
#include <magpie/net/buffered.h>
#include <magpie/select.h>
#include <magpie/wait_group.h>

#include "net/child.h"
#include "net/error_code.h"
#include "net/spawn_child.h"

namespace magpie {

using detail::Child;
using detail::kNoDeadline;

std::string ExitStatus::to_string() const {
  if (signal_ == 0) return "exit code " + std::to_string(code_);
  const char* name = sigdescr_np(signal_);
  return "signal " + std::to_string(signal_) +
         (name == nullptr ? "" : " (" + std::string(name) + ')');
}

Process::Process() noexcept = default;
Process::Process(Process&&) noexcept = default;

Process& Process::operator=(Process&& other) noexcept {
  if (this == &other) return *this;
  end();
  child_ = std::move(other.child_);
  input_ = std::move(other.input_);
  output_ = std::move(other.output_);
  error_ = std::move(other.error_);
  return *this;
}

Process::~Process() { end(); }

void Process::end() noexcept {
  std::shared_ptr<Child> child = std::move(child_);
  if (child == nullptr) return;
  (void)child->send(SIGKILL);
  while (true) {
    try {
      (void)child->wait(Context::background(), kNoDeadline);
      return;
    } catch (const std::bad_alloc&) {  // there was no memory to wait with
      yield();
    }
  }
}

Process Process::spawn(std::vector<std::string> command, ProcessOptions options) {
  Child::reap_orphans();
  net::Spawned spawned = net::spawn_child(command, options);
  Process process;
  process.child_ = std::move(spawned.child);
  process.child_->watch();
  process.input_ = std::move(spawned.input);
  process.output_ = std::move(spawned.output);
  process.error_ = std::move(spawned.error);
  return process;
}

Child& Process::child(const char* what) const {
  if (child_ == nullptr)
    throw std::logic_error(std::string("magpie: Process::") + what + "(): there is none");
  return *child_;
}

pid_t Process::id() const { return child("id").id(); }

ExitStatus Process::wait() {
  Child& mine = child("wait");
  (void)mine.wait(Context::background(), kNoDeadline);
  return mine.status();
}

ExitStatus Process::wait(const Context& context) {
  Child& mine = child("wait");
  if (!mine.wait(context, kNoDeadline))
    throw std::system_error(context.err(), "magpie: wait for a process");
  return mine.status();
}

std::optional<ExitStatus> Process::wait_until_ns(detail::DeadlineNs deadline) {
  Child& mine = child("wait");
  if (!mine.wait(Context::background(), deadline)) return std::nullopt;
  return mine.status();
}

ExitStatus Process::wait_or_kill_ns(const Context& context, std::int64_t grace_ns) {
  Child& mine = child("wait_or_kill");
  if (!mine.wait(context, kNoDeadline)) {
    bool ended = false;
    if (grace_ns > 0) {
      kill(SIGTERM);
      ended = mine.wait(Context::background(),
                        detail::deadline_after(std::chrono::nanoseconds(grace_ns)));
    }
    if (!ended) {
      kill(SIGKILL);
      (void)mine.wait(Context::background(), kNoDeadline);
    }
  }
  return mine.status();
}

void Process::kill(int signal) {
  if (int error = child("kill").send(signal); error != 0)
    throw std::system_error(error, std::generic_category(), "magpie: kill a process");
}

void Process::detach() {
  (void)child("detach");
  child_.reset();
}

namespace {

// The first thing that went wrong for several goroutines, which then ends what the others wait for.
class FirstFailure {
 public:
  // Calls f. If it throws, and nothing had failed before, calls give_up.
  template <class F, class GiveUp>
  void guard(F f, GiveUp give_up) {
    try {
      f();
    } catch (...) {
      if (has_failed_.exchange(true, std::memory_order_relaxed)) return;
      failure_ = std::current_exception();
      give_up();
    }
  }
  // When all have returned.
  void rethrow() {
    if (failure_ != nullptr) std::rethrow_exception(failure_);
  }

 private:
  // atomic, a lock: its taker writes failure_, and keeps it; joining publishes that
  std::atomic<bool> has_failed_{false};
  std::exception_ptr failure_;
};

}  // namespace

// Whatever fails, it kills the child and closes the pipes. So it never waits for a child that waits
// for a reader, nor for another process that has got the child's end of a pipe.
Process::Output Process::communicate(std::string_view input, std::size_t limit,
                                     const Context& context) {
  Child& mine = child("communicate");
  Output all;
  FirstFailure first;
  auto guarded = [&](auto f) {
    first.guard(f, [&] {
      (void)mine.send(SIGKILL);
      for (net::PipeStream* stream : {&input_, &output_, &error_}) stream->close();
    });
  };
  auto read = [limit](net::PipeStream& from, std::string& to) {
    if (from.native_handle() >= 0) to = net::BufferedReader(from, 64 * 1024).read_all(limit);
  };
  const Chan<void> finished;
  WaitGroup streams, watching;
  guarded([&] {
    if (context.err()) throw std::system_error(context.err(), "magpie: communicate");
    if (context.done() != Chan<void>::nil()) {
      watching.go([&] {
        guarded([&] {
          magpie::select(on_recv(finished), on_done(context));
          if (!finished.closed()) throw std::system_error(context.err(), "magpie: communicate");
        });
      });
    }
    streams.go([&] {
      guarded([&] {
        if (input_.native_handle() < 0) return;
        std::error_code ignored;  // it may have ended without reading
        input_.write(input, ignored);
        input_.close();
      });
    });
    streams.go([&] { guarded([&] { read(error_, all.error); }); });
    read(output_, all.output);
  });
  streams.wait();
  guarded([&] { all.status = wait(); });
  finished.close();
  watching.wait();
  first.rethrow();
  return all;
}

Process::Output Process::communicate(std::string_view input, std::size_t limit) {
  return communicate(input, limit, Context::background());
}

Process Process::spawn(std::vector<std::string> command, ProcessOptions options,
                       std::error_code& error) {
  return net::with_error_code(error, [&] {
    try {
      return Process::spawn(std::move(command), std::move(options));
    } catch (const std::invalid_argument& thrown) {
      throw std::system_error(std::make_error_code(std::errc::invalid_argument), thrown.what());
    }
  });
}
ExitStatus Process::wait(std::error_code& error) {
  return net::with_error_code(error, [&] { return wait(); });
}
ExitStatus Process::wait(const Context& context, std::error_code& error) {
  return net::with_error_code(error, [&] { return wait(context); });
}
std::optional<ExitStatus> Process::wait_until_ns(detail::DeadlineNs deadline,
                                                 std::error_code& error) {
  return net::with_error_code(error, [&] { return wait_until_ns(deadline); });
}
ExitStatus Process::wait_or_kill_ns(const Context& context, std::int64_t grace_ns,
                                    std::error_code& error) {
  return net::with_error_code(error, [&] { return wait_or_kill_ns(context, grace_ns); });
}
void Process::kill(int signal, std::error_code& error) {
  net::with_error_code(error, [&] { kill(signal); });
}
Process::Output Process::communicate(std::string_view input, std::size_t limit,
                                     std::error_code& error) {
  return net::with_error_code(error, [&] { return communicate(input, limit); });
}
Process::Output Process::communicate(std::string_view input, std::size_t limit,
                                     const Context& context, std::error_code& error) {
  return net::with_error_code(error, [&] { return communicate(input, limit, context); });
}

}  // namespace magpie
