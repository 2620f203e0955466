// resolver_threads.cc: getaddrinfo, which blocks for as long as it likes, in a few threads beside the runtime.
//
// Whoever asks waits for an eventfd, until its time is up, and leaves then: the thread finishes alone. The threads know nothing of the
// runtime, so a run() may end meanwhile. There are at most kMostThreads; more questions wait in line, and those that nobody waits
// for any more are passed over. Who asks for a name that somebody has asked for already waits for the same answer.
//
// The lock is held for a few instructions that do not enter the runtime, so no goroutine is dropped with it.
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include <magpie/blocking.h>

#include "net/errors.h"
#include "net/resolve.h"
#include "net/wait_for.h"

namespace magpie::net {
namespace {

constexpr int kMostThreads = 32;

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

 private:
  std::shared_ptr<Question> take();
  void work();
  void close_question(const Question& question);
  [[nodiscard]] bool start_thread();
  [[nodiscard]] bool give_thread_up();

  // Of the process that forked this one: kept, so that it is no leak.
  [[maybe_unused]] Desk* const of_parent_;
  std::mutex lock_;
  // guarded by lock_
  std::unordered_map<std::string, std::weak_ptr<Question>> open_;
  std::deque<std::weak_ptr<Question>> line_;
  int threads_ = 0;
};

// Never destroyed: threads may be at work when the program ends. The child of a fork has none of them, and a new desk.
Desk& desk() {
  // atomic, published: the first that asks, and the child of a fork before anything else
  static std::atomic<Desk*> current = [] {
    pthread_atfork(nullptr, nullptr, [] {
      Desk* of_parent = current.load(std::memory_order_relaxed);  // there is no other thread
      current.store(new Desk(of_parent), std::memory_order_release);
    });
    return new Desk(nullptr);
  }();
  return *current.load(std::memory_order_acquire);
}

[[gnu::noinline]] int make_event() { return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC); }

std::shared_ptr<Question> Desk::ask(const std::string& host, std::error_code& error) {
  std::shared_ptr<Question> question;
  bool wants_thread = false;
  {
    std::lock_guard hold(lock_);
    auto at = open_.find(host);
    if (at != open_.end() && (question = at->second.lock()) != nullptr) return question;
    int event = make_event();
    if (event < 0) {
      error = code_of_errno();
      return nullptr;
    }
    question = std::make_shared<Question>(host, event);
    open_[host] = question;
    line_.push_back(question);
    wants_thread = threads_ < kMostThreads;
    if (wants_thread) ++threads_;
  }
  // Without threads somebody has to do it here.
  if (wants_thread && !start_thread() && give_thread_up()) blocking([this] { work(); });
  return question;
}

// It gets no signals: they are for threads of the program.
bool Desk::start_thread() {
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
  bool started = pthread_create(&thread, &attributes, main, this) == 0;
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

// True: there is no other, and the caller has to work in its place.
bool Desk::give_thread_up() {
  std::lock_guard hold(lock_);
  if (threads_ == 1) return true;
  --threads_;
  return false;
}

void Desk::work() {
  while (std::shared_ptr<Question> question = take()) {
    question->addresses = ask_system(question->host, AI_ADDRCONFIG, question->error);
    close_question(*question);
    question->is_there.store(true, std::memory_order_release);  // with look_up_in_thread()
    std::uint64_t one = 1;
    (void)!write(question->answered, &one, sizeof one);
  }
}

// Null: the line is empty, and the thread does not count any more.
std::shared_ptr<Question> Desk::take() {
  std::lock_guard hold(lock_);
  while (!line_.empty()) {
    std::shared_ptr<Question> question = line_.front().lock();
    line_.pop_front();
    if (question != nullptr) return question;
  }
  // Left by those who gave up.
  std::erase_if(open_, [](const auto& each) { return each.second.expired(); });
  --threads_;
  return nullptr;
}

// Who asks from now on asks anew.
void Desk::close_question(const Question& question) {
  std::lock_guard hold(lock_);
  auto at = open_.find(question.host);
  if (at != open_.end() && at->second.lock().get() == &question) open_.erase(at);
}

}  // namespace

std::vector<Address> look_up_in_thread(const std::string& host, detail::DeadlineNs deadline,
                                       const Context* context, std::error_code& error) {
  std::shared_ptr<Question> question = desk().ask(host, error);
  if (question == nullptr) return {};
  error = wait_anywhere(question->answered, POLLIN, deadline, context);
  if (error) return {};
  (void)question->is_there.load(
      std::memory_order_acquire);  // with work(): the kernel's order is not the language's
  error = question->error;
  return question->addresses;
}

}  // namespace magpie::net
