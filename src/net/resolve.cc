#include "net/resolve.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <pthread.h>

#include <cerrno>
#include <memory>
#include <mutex>
#include <utility>

#include <magpie/context.h>
#include <magpie/net/resolver.h>

#include "base/immortal.h"
#include "net/errors.h"

namespace magpie::net {
namespace {

class ResolverErrors final : public std::error_category {
 public:
  const char* name() const noexcept override { return "resolver"; }
  std::string message(int code) const override { return gai_strerror(code); }
};

// Taken for a moment in which nothing else is waited for, and by fork(): nobody would ever release
// the child's copy. Registered while the program is loaded (base/per_process.h says why).
constinit std::mutex chosen_lock;
[[maybe_unused]] const int chosen_at_forks = pthread_atfork(
    [] { chosen_lock.lock(); }, [] { chosen_lock.unlock(); }, [] { chosen_lock.unlock(); });

// Guarded by chosen_lock. Null: the system's.
constinit base::Immortal<std::shared_ptr<Resolver>> chosen;

std::shared_ptr<Resolver> chosen_resolver() {
  std::lock_guard hold(chosen_lock);
  return chosen.value;
}

// "127.1", "0x7f.0.0.1" and "2130706433" are 127.0.0.1 to inet_aton(), and so to getaddrinfo(). A
// program that allows or forbids addresses does not expect that, and nobody calls a machine so.
bool is_number_of_old(const std::string& host) {
  in_addr any;
  return inet_aton(host.c_str(), &any) != 0;
}

std::vector<Address> or_throw(const std::string& host, detail::DeadlineNs deadline,
                              const Context* context) {
  std::error_code error;
  std::vector<Address> found = look_up(host, deadline, context, error);
  if (error) fail(error, "resolve " + host);
  return found;
}

}  // namespace

const std::error_category& resolver_errors() noexcept {
  static const ResolverErrors category;
  return category;
}

void set_resolver(std::shared_ptr<Resolver> resolver) {
  std::shared_ptr<Resolver> before;  // goes after the lock is released
  std::lock_guard hold(chosen_lock);
  before = std::exchange(chosen.value, std::move(resolver));
}

std::vector<Address> ask_system(const std::string& host, int flags, std::error_code& error) {
  error.clear();
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* list = nullptr;
  int code = getaddrinfo(host.c_str(), nullptr, &hints, &list);
  if (code != 0) {
    error = code == EAI_SYSTEM ? code_of_errno() : std::error_code(code, resolver_errors());
    return {};
  }
  std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> first(list, &freeaddrinfo);
  std::vector<Address> all;
  for (const addrinfo* at = list; at != nullptr; at = at->ai_next) {
    if (at->ai_family == AF_INET || at->ai_family == AF_INET6)
      all.push_back(Address::from(at->ai_addr, at->ai_addrlen));
  }
  if (all.empty()) error = std::error_code(EAI_NONAME, resolver_errors());
  return all;
}

std::vector<Address> addresses_of_number(const std::string& host) {
  in6_addr any;
  bool is_v4 = inet_pton(AF_INET, host.c_str(), &any) == 1;
  bool is_v6 = host.find(':') != std::string::npos;
  if (!is_v4 && !is_v6) return {};
  std::error_code not_a_number;
  return ask_system(host, AI_NUMERICHOST, not_a_number);
}

std::vector<Address> look_up(const std::string& host, detail::DeadlineNs deadline,
                             const Context* context, std::error_code& error) {
  error.clear();
  if (context != nullptr && (error = context->err())) return {};
  // The system would take what is before it for the name.
  if (host.find('\0') != host.npos) {
    error = code_of(EINVAL);
    return {};
  }
  if (std::vector<Address> found = addresses_of_number(host); !found.empty()) return found;
  if (is_number_of_old(host)) {
    error = std::error_code(EAI_NONAME, resolver_errors());
    return {};
  }
  std::shared_ptr<Resolver> resolver = chosen_resolver();
  std::vector<Address> found =
      resolver != nullptr ? resolver->look_up(host, detail::steady_time(deadline), context, error)
                          : look_up_in_thread(host, deadline, context, error);
  if (found.empty() && !error) error = std::error_code(EAI_NONAME, resolver_errors());
  return found;
}

std::vector<Address> resolve(const std::string& host) {
  return or_throw(host, detail::kNoDeadline, nullptr);
}
std::vector<Address> resolve(const std::string& host, std::error_code& error) {
  return look_up(host, detail::kNoDeadline, nullptr, error);
}
std::vector<Address> resolve(const std::string& host, const Context& context) {
  return or_throw(host, detail::kNoDeadline, &context);
}
std::vector<Address> resolve(const std::string& host, const Context& context,
                             std::error_code& error) {
  return look_up(host, detail::kNoDeadline, &context, error);
}

}  // namespace magpie::net

namespace magpie::detail {

std::vector<net::Address> resolve_until(const std::string& host, DeadlineNs deadline) {
  return net::or_throw(host, deadline, nullptr);
}
std::vector<net::Address> resolve_until(const std::string& host, DeadlineNs deadline,
                                        std::error_code& error) {
  return net::look_up(host, deadline, nullptr, error);
}

}  // namespace magpie::detail
