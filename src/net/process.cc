#include <magpie/process.h>

#include <string.h>

#include <stdexcept>
#include <system_error>
#include <utility>

#include <magpie/go.h>
#include <magpie/net/buffered.h>

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
  process.child_ = Child::watch(spawned.id);
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

Process::Output Process::communicate(std::string_view input, std::size_t limit) {
  (void)child("communicate");
  auto read = [limit](net::PipeStream& from) {
    if (from.native_handle() < 0) return std::string();
    return net::BufferedReader(from, 64 * 1024).read_all(limit);
  };
  JoinHandle<void> writing = magpie::spawn([&] {
    if (input_.native_handle() < 0) return;
    std::error_code ignored;  // it may have ended without reading
    input_.write(input, ignored);
    input_.close();
  });
  JoinHandle<std::string> errors = magpie::spawn([&] { return read(error_); });
  Output all;
  try {
    all.output = read(output_);
    all.error = errors.join();
  } catch (...) {
    (void)child_->send(SIGKILL);
    for (net::PipeStream* stream : {&input_, &output_, &error_}) stream->close();
    throw;  // after the handles have waited for their goroutines
  }
  writing.join();
  all.status = wait();
  return all;
}

Process Process::spawn(std::vector<std::string> command, ProcessOptions options,
                       std::error_code& error) {
  return net::with_error_code(
      error, [&] { return Process::spawn(std::move(command), std::move(options)); });
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

}  // namespace magpie
