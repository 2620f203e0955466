#include "command/debug_client.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "command/commands.h"

namespace magpie::command {

namespace {

// A process that records a trace answers after a minute at most.
constexpr int kPatienceSeconds = 90;

// A descriptor that closes itself.
struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) close(number);
  }
};

void set_patience(int descriptor) {
  timeval patience{.tv_sec = kPatienceSeconds, .tv_usec = 0};
  setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
}

// Every byte escaped, so that any token can stand in a query.
std::string escaped(const std::string& text) {
  std::string all;
  for (char c : text) {
    char escape[4];
    std::snprintf(escape, sizeof escape, "%%%02X", static_cast<unsigned char>(c));
    all += escape;
  }
  return all;
}

std::string joined_chunks(const std::string& body) {
  std::string whole;
  std::size_t at = 0;
  while (at < body.size()) {
    const std::size_t size = std::strtoull(body.c_str() + at, nullptr, 16);
    const std::size_t begin = body.find("\r\n", at);
    if (size == 0 || begin == std::string::npos || size > body.size() - begin - 2) break;
    whole += body.substr(begin + 2, size);
    at = begin + 2 + size + 2;
  }
  return whole;
}

// Whether the socket's other end is this process: anybody may take the name of its socket.
bool leads_to(int descriptor, int pid) {
  ucred other{};
  socklen_t size = sizeof other;
  return getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &other, &size) == 0 && other.pid == pid;
}

// The value of a field of the head; empty if it is not there.
std::string field_of(const std::string& head, const char* name) {
  std::string lower = head;
  for (char& c : lower) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  const std::size_t at = lower.find("\r\n" + std::string(name) + ": ");
  if (at == std::string::npos) return {};
  const std::size_t begin = lower.find(": ", at) + 2;
  return lower.substr(begin, lower.find("\r\n", begin) - begin);
}

}  // namespace

DebugClient::DebugClient(const std::string& target, const std::string& token) {
  if (!token.empty()) token_ = "token=" + escaped(token);
  const char* end = target.data() + target.size();
  if (auto [at, error] = std::from_chars(target.data(), end, pid_);
      error == std::errc() && at == end && pid_ > 0)
    return;
  pid_ = 0;
  const std::string scheme = "http://";
  if (target.compare(0, scheme.size(), scheme) != 0)
    throw Failure("\"" + target +
                  "\" is neither a process number nor a URL that begins with http://");
  std::string rest = target.substr(scheme.size());
  rest = rest.substr(0, rest.find('#'));
  if (const std::size_t query = rest.find("token="); token.empty() && query != std::string::npos)
    token_ = rest.substr(query, rest.find('&', query) - query);
  rest = rest.substr(0, rest.find_first_of("/?"));
  const std::size_t colon = rest.rfind(':');
  const bool has_port = colon != std::string::npos && rest.find(']', colon) == std::string::npos;
  host_ = rest.substr(0, has_port ? colon : std::string::npos);
  port_ = has_port ? rest.substr(colon + 1) : "80";
  if (host_.size() > 2 && host_.front() == '[') host_ = host_.substr(1, host_.size() - 2);
  if (host_.empty()) throw Failure("\"" + target + "\" names no host");
}

int DebugClient::connect(std::string& error) const {
  if (pid_ != 0) {
    const std::string name = "magpie-debug-" + std::to_string(pid_);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());  // abstract: begins with a zero
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    const int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (descriptor >= 0) set_patience(descriptor);
    if (descriptor >= 0 &&
        ::connect(descriptor, reinterpret_cast<sockaddr*>(&address), length) == 0 &&
        leads_to(descriptor, pid_))
      return descriptor;
    error = "process " + std::to_string(pid_) + " does not call magpie::debug::serve()";
    if (descriptor >= 0) close(descriptor);
    return -1;
  }
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (const int failed = getaddrinfo(host_.c_str(), port_.c_str(), &hints, &found); failed != 0) {
    error = host_ + ": " + gai_strerror(failed);
    return -1;
  }
  int descriptor = -1;
  for (addrinfo* one = found; one != nullptr && descriptor < 0; one = one->ai_next) {
    descriptor = socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, one->ai_protocol);
    if (descriptor >= 0) set_patience(descriptor);
    if (descriptor >= 0 && ::connect(descriptor, one->ai_addr, one->ai_addrlen) == 0) break;
    error = host_ + ":" + port_ + ": " + std::strerror(errno);
    if (descriptor >= 0) close(descriptor);
    descriptor = -1;
  }
  freeaddrinfo(found);
  return descriptor;
}

bool DebugClient::answers() const {
  std::string error;
  const Descriptor socket{connect(error)};
  return socket.number >= 0;
}

std::string DebugClient::get(const std::string& path) const {
  std::string error;
  const Descriptor socket{connect(error)};
  if (socket.number < 0) throw Failure(error);
  std::string target = path;
  if (!token_.empty()) target += (path.find('?') == std::string::npos ? "?" : "&") + token_;
  const bool is_v6 = host_.find(':') != std::string::npos;
  const std::string host =
      pid_ != 0 ? "localhost" : (is_v6 ? "[" + host_ + "]" : host_) + ":" + port_;
  const std::string request =
      "GET " + target + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n";
  for (std::size_t sent = 0; sent < request.size();) {
    const ssize_t more =
        send(socket.number, request.data() + sent, request.size() - sent, MSG_NOSIGNAL);
    if (more <= 0) throw Failure(path + ": sending failed: " + std::strerror(errno));
    sent += static_cast<std::size_t>(more);
  }
  std::string answer;
  char buffer[16384];
  for (;;) {
    const ssize_t got = recv(socket.number, buffer, sizeof buffer, 0);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
      throw Failure(path + ": no answer for " + std::to_string(kPatienceSeconds) + " seconds");
    if (got < 0) throw Failure(path + ": no answer: " + std::strerror(errno));
    if (got == 0) break;
    answer.append(buffer, static_cast<std::size_t>(got));
  }
  const std::size_t head_end = answer.find("\r\n\r\n");
  if (answer.compare(0, 5, "HTTP/") != 0 || head_end == std::string::npos)
    throw Failure(path + ": the answer is not HTTP");
  const std::string head = answer.substr(0, head_end);
  const std::string status = head.substr(0, head.find("\r\n"));
  std::string body = answer.substr(head_end + 4);
  if (field_of(head, "transfer-encoding") == "chunked") body = joined_chunks(body);
  if (status.find(" 200") == std::string::npos) {
    const std::string why = body.substr(0, body.find('\n'));
    throw Failure(path + ": " + status + (why.empty() ? "" : ": ") + why);
  }
  const std::string length = field_of(head, "content-length");
  if (!length.empty() && length != std::to_string(body.size()))
    throw Failure(path + ": the answer broke off after " + std::to_string(body.size()) + " bytes");
  return body;
}

}  // namespace magpie::command
