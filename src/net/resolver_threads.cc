// resolver_threads.cc: getaddrinfo, which may block for long, in a few threads beside the runtime.
//
// A caller waits for an eventfd until its time is up; then it goes, and the thread finishes alone.
// The threads know nothing of the runtime, so a run() may end meanwhile. There are at most
// kMostThreads. More questions wait in a queue, and the threads skip questions that nobody waits
// for any more. When half of the queue is such questions, they are swept out: a program that is
// made to ask for names faster than they are answered keeps its memory. A caller that asks for a
// name which is already being asked for waits for the same answer.
//
// While a question is queued there is a thread for it, or none can be had. In that case a caller
// without a limit takes its own question out of the queue and answers it itself. A caller with a
// limit could not keep the limit that way: it tries again to get a thread, until its time is up.
//
// The lock is held only over code that does not enter the runtime, so no goroutine is dropped with
// it. Threads are started under it, so every thread that is counted exists.
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include <magpie/blocking.h>

#include "base/os.h"
#include "base/per_process.h"
#include "net/errors.h"
#include "net/resolve.h"
#include "net/wait_for.h"

namespace magpie::net {
namespace {

constexpr int kMostThreads = 32;
constexpr std::size_t kFirstSweep = 256;

struct Question {
  Question(std::string name, int event) : host(std::move(name)), answered(event) {}
  ~Question() { close(answered); }
  Question(const Question&) = delete;
  Question& operator=(const Question&) = delete;

  const std::string host;
  const int answered;  // an eventfd that can be read once the answer is there, and ever after
  std::atomic<bool> is_there{false};  // atomic, published: the thread, before the eventfd
  // The thread's, then fixed.
  std::error_code error;
  std::vector<Address> addresses;
};

class Desk {
 public:
  explicit Desk(Desk* of_parent) : of_parent_(of_parent) {}

  // Null: see `error`.
  std::shared_ptr<Question> ask(const std::string& host, std::error_code& error);

  enum class Worker { there, none };
  // Tries to have a thread for a question that is in line.
  [[nodiscard]] Worker find_worker(const Question& question);
  // Unless somebody has taken it.
  void answer_here(const std::shared_ptr<Question>& question);

 private:
  std::shared_ptr<Question> take();
  void work();
  void answer(Question& question);
  void close_question(const Question& question);
  [[nodiscard]] bool start_thread_locked();
  void sweep_locked();
  [[nodiscard]] std::deque<std::weak_ptr<Question>>::iterator place_locked(
      const Question& question);

  // Of the process that forked this one: kept, so that it is no leak.
  [[maybe_unused]] Desk* const of_parent_;
  std::mutex lock_;
  // guarded by lock_
  std::unordered_map<std::string, std::weak_ptr<Question>> open_;
  std::deque<std::weak_ptr<Question>> line_;
  std::size_t sweep_at_ = kFirstSweep;  // names, or questions in line
  int threads_ = 0;
};

// The child of a fork has none of the threads, and a new desk.
constinit base::PerProcess<Desk> desks;
[[maybe_unused]] const int desks_at_forks =
    pthread_atfork(nullptr, nullptr, [] { desks.renew_in_child(); });

Desk& desk() { return desks.get(); }

[[gnu::noinline]] int make_event() { return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC); }

std::shared_ptr<Question> Desk::ask(const std::string& host, std::error_code& error) {
  std::shared_ptr<Question> question;
  std::lock_guard hold(lock_);
  auto at = open_.find(host);
  if (at != open_.end() && (question = at->second.lock()) != nullptr) return question;
  int event = make_event();
  if (event < 0) {
    error = code_of_errno();
    return nullptr;
  }
  question = std::make_shared<Question>(host, event);
  if (std::max(open_.size(), line_.size()) >= sweep_at_) sweep_locked();
  open_[host] = question;
  line_.push_back(question);
  if (threads_ < kMostThreads && start_thread_locked()) ++threads_;
  return question;
}

// Forgets the questions of callers that gave up.
void Desk::sweep_locked() {
  std::erase_if(open_, [](const auto& each) { return each.second.expired(); });
  std::erase_if(line_, [](const auto& each) { return each.expired(); });
  sweep_at_ = std::max(kFirstSweep, 2 * std::max(open_.size(), line_.size()));
}

std::deque<std::weak_ptr<Question>>::iterator Desk::place_locked(const Question& question) {
  return std::find_if(line_.begin(), line_.end(),
                      [&](const auto& each) { return each.lock().get() == &question; });
}

Desk::Worker Desk::find_worker(const Question& question) {
  std::lock_guard hold(lock_);
  if (threads_ > 0 || place_locked(question) == line_.end()) return Worker::there;
  if (!start_thread_locked()) return Worker::none;
  ++threads_;
  return Worker::there;
}

void Desk::answer_here(const std::shared_ptr<Question>& question) {
  {
    std::lock_guard hold(lock_);
    auto at = place_locked(*question);
    if (at == line_.end()) return;
    line_.erase(at);
  }
  blocking([&] { answer(*question); });
}

// It gets no signals: they are for threads of the program.
bool Desk::start_thread_locked() {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  auto main = [](void* self) -> void* {
    pthread_setname_np(pthread_self(), "magpie-resolver");
    static_cast<Desk*>(self)->work();
    return nullptr;
  };
  bool started = base::os().create_thread(&thread, &attributes, main, this) == 0;
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

void Desk::work() {
  while (std::shared_ptr<Question> question = take()) answer(*question);
}

void Desk::answer(Question& question) {
  question.addresses = ask_system(question.host, AI_ADDRCONFIG, question.error);
  close_question(question);
  question.is_there.store(true, std::memory_order_release);  // with look_up_in_thread()
  std::uint64_t one = 1;
  (void)!write(question.answered, &one, sizeof one);
}

// Null: the line is empty, and the thread does not count any more.
std::shared_ptr<Question> Desk::take() {
  std::lock_guard hold(lock_);
  while (!line_.empty()) {
    std::shared_ptr<Question> question = line_.front().lock();
    line_.pop_front();
    if (question != nullptr) return question;
  }
  sweep_locked();
  --threads_;
  return nullptr;
}

// Later callers ask anew.
void Desk::close_question(const Question& question) {
  std::lock_guard hold(lock_);
  auto at = open_.find(question.host);
  if (at != open_.end() && at->second.lock().get() == &question) open_.erase(at);
}

constexpr detail::DeadlineNs kTryAgainEvery = 10'000'000;

std::error_code wait_for_answer(const std::shared_ptr<Question>& question,
                                detail::DeadlineNs deadline, const Context* context) {
  const bool is_limited = deadline != detail::kNoDeadline || context != nullptr;
  while (desk().find_worker(*question) == Desk::Worker::none) {
    if (!is_limited) {
      desk().answer_here(question);
      break;
    }
    detail::DeadlineNs soon = detail::steady_now_ns() + kTryAgainEvery;
    std::error_code error =
        wait_anywhere(question->answered, POLLIN, std::min(soon, deadline), context);
    if (error != std::errc::timed_out || deadline <= soon) return error;
    if (context != nullptr && context->cancelled()) return context->err();
  }
  return wait_anywhere(question->answered, POLLIN, deadline, context);
}

}  // namespace

std::vector<Address> look_up_in_thread(const std::string& host, detail::DeadlineNs deadline,
                                       const Context* context, std::error_code& error) {
  std::shared_ptr<Question> question = desk().ask(host, error);
  if (question == nullptr) return {};
  error = wait_for_answer(question, deadline, context);
  if (error) return {};
  (void)question->is_there.load(
      std::memory_order_acquire);  // with work(): the kernel's order is not the language's
  error = question->error;
  return question->addresses;
}

}  // namespace magpie::net
