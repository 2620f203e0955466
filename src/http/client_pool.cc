#include "http/client_pool.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <utility>

#include <magpie/detail/deadline.h>
#include <magpie/net/tls.h>
#include <magpie/time.h>

namespace magpie::http {

namespace {

// A server that has closed, or says something unasked, is not to be asked again.
bool check_alive(net::Stream& stream) {
  // TLS has words of its own, and may hold bytes that the socket does not show.
  if (auto* tls = dynamic_cast<net::TlsConn*>(&stream)) return tls->check_idle();
  int socket = stream.native_handle();
  if (socket < 0) return true;
  char byte;
  ssize_t n = ::recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

}  // namespace

std::unique_ptr<net::Stream> ClientPool::take(const std::string& key) {
  for (;;) {
    std::unique_ptr<net::Stream> stream;
    {
      std::lock_guard hold(mutex_);
      auto found = idle_.find(key);
      if (found == idle_.end()) return nullptr;
      stream = std::move(found->second.back().stream);
      found->second.pop_back();
      if (found->second.empty()) idle_.erase(found);
    }
    if (check_alive(*stream)) return stream;
  }
}

void ClientPool::give(const std::string& key, std::unique_ptr<net::Stream> stream) {
  if (per_host_ == 0) return;
  std::unique_ptr<net::Stream> oldest;  // closed without the lock
  std::lock_guard hold(mutex_);
  auto& list = idle_[key];
  if (list.size() >= per_host_) {
    oldest = std::move(list.front().stream);
    list.erase(list.begin());
  }
  list.push_back({std::move(stream), detail::steady_now_ns()});
  if (idle_time_.count() != 0 && !std::exchange(timer_runs_, true)) close_old_later_locked();
}

ClientPool::~ClientPool() {
  if (timer_) timer_->stop();
}

void ClientPool::close_old_later_locked() {
  timer_ = after_func(idle_time_, [weak = weak_from_this()] {
    if (auto self = weak.lock()) self->close_old();
  });
}

void ClientPool::close_old() {
  std::vector<IdleConnection> old;  // closed without the lock
  std::lock_guard hold(mutex_);
  const std::int64_t before = detail::steady_now_ns() - idle_time_.count();
  for (auto entry = idle_.begin(); entry != idle_.end();) {
    auto& list = entry->second;
    auto young = std::find_if(list.begin(), list.end(), [before](const IdleConnection& one) {
      return one.since_ns > before;
    });
    std::move(list.begin(), young, std::back_inserter(old));
    list.erase(list.begin(), young);
    entry = list.empty() ? idle_.erase(entry) : std::next(entry);
  }
  timer_runs_ = !idle_.empty();
  if (timer_runs_) close_old_later_locked();
}

std::size_t ClientPool::size() const {
  std::lock_guard hold(mutex_);
  std::size_t all = 0;
  for (const auto& [key, list] : idle_) all += list.size();
  return all;
}

void ClientPool::clear() {
  decltype(idle_) old;
  std::lock_guard hold(mutex_);
  old.swap(idle_);
}

}  // namespace magpie::http
