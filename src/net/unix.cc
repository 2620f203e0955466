#include <magpie/net/unix.h>

#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "net/errors.h"
#include "net/socket.h"

namespace magpie::net {

using io::Descriptor;

namespace {

std::unique_ptr<Descriptor> open_unix(std::error_code& error) {
  return open_socket(AF_UNIX, SOCK_STREAM, Descriptor::Kind::packets, error);
}

// Null: see `error`. Throws std::invalid_argument for what is no path.
std::unique_ptr<Descriptor> connect_unix(std::string_view path, const Context* context,
                                         std::error_code& error) {
  Address address = Address::unix_path(path);
  std::unique_ptr<Descriptor> descriptor = open_unix(error);
  if (!error) error = connect_to(*descriptor, address, context);
  return error ? nullptr : std::move(descriptor);
}

// A file that is there, and a socket that nobody listens at.
bool is_stale(std::string_view path) {
  std::error_code error;
  (void)connect_unix(path, nullptr, error);
  return error == std::errc::connection_refused;
}

std::unique_ptr<Descriptor> listen_unix(std::string_view path, const UnixBindOptions& options,
                                        std::error_code& error) {
  Address address = Address::unix_path(path);
  std::unique_ptr<Descriptor> descriptor = open_unix(error);
  if (error) return nullptr;
  error = bind_to(*descriptor, address);
  if (error == std::errc::address_in_use && options.replace_stale && path.front() != '@' &&
      is_stale(path)) {
    unlink(std::string(path).c_str());
    error = bind_to(*descriptor, address);
  }
  if (!error) error = listen_on(*descriptor, options.backlog);
  return error ? nullptr : std::move(descriptor);
}

}  // namespace

UnixConn UnixConn::connect(std::string_view path) {
  std::error_code error;
  UnixConn conn(connect_unix(path, nullptr, error));
  if (error) fail(error, connecting(path));
  return conn;
}
UnixConn UnixConn::connect(std::string_view path, std::error_code& error) {
  return UnixConn(without_throwing(error, [&] { return connect_unix(path, nullptr, error); }));
}
UnixConn UnixConn::connect(std::string_view path, const Context& context) {
  std::error_code error;
  UnixConn conn(connect_unix(path, &context, error));
  if (error) fail(error, connecting(path));
  return conn;
}
UnixConn UnixConn::connect(std::string_view path, const Context& context, std::error_code& error) {
  return UnixConn(without_throwing(error, [&] { return connect_unix(path, &context, error); }));
}

UnixConn UnixConn::adopt(int fd, std::error_code& error) {
  return UnixConn(adopt_socket(fd, AF_UNIX, Expected::connected, Descriptor::Kind::packets, error));
}
UnixConn UnixConn::adopt(int fd) {
  std::error_code error;
  UnixConn conn = adopt(fd, error);
  if (error) fail(error, adopting(fd) + " as a connection of a Unix socket");
  return conn;
}

UnixListener UnixListener::bind(std::string_view path) { return bind(path, UnixBindOptions()); }
UnixListener UnixListener::bind(std::string_view path, std::error_code& error) {
  return bind(path, UnixBindOptions(), error);
}
UnixListener UnixListener::bind(std::string_view path, const UnixBindOptions& options) {
  std::error_code error;
  UnixListener listener(listen_unix(path, options, error));
  if (error) fail(error, binding(path));
  if (path.front() != '@') listener.path_ = path;
  return listener;
}
UnixListener UnixListener::bind(std::string_view path, const UnixBindOptions& options,
                                std::error_code& error) {
  UnixListener listener(without_throwing(error, [&] { return listen_unix(path, options, error); }));
  if (!error && path.front() != '@') listener.path_ = path;
  return listener;
}

UnixListener UnixListener::adopt(int fd, std::error_code& error) {
  return UnixListener(
      adopt_socket(fd, AF_UNIX, Expected::listening, Descriptor::Kind::packets, error),
      Origin::adopted);
}
UnixListener UnixListener::adopt(int fd) {
  std::error_code error;
  UnixListener listener = adopt(fd, error);
  if (error) fail(error, adopting(fd) + " as a listener of a Unix socket");
  return listener;
}

UnixListener& UnixListener::operator=(UnixListener&& other) noexcept {
  close();
  Listener::operator=(std::move(other));
  path_ = std::exchange(other.path_, {});
  return *this;
}

void UnixListener::close() noexcept {
  Listener::close();
  if (!path_.empty()) unlink(path_.c_str());
  path_.clear();
}

UnixConn UnixListener::accept() {
  std::error_code error;
  UnixConn conn = accept(error);
  if (error) fail_to_accept(error);
  return conn;
}
UnixConn UnixListener::accept(std::error_code& error) {
  return UnixConn(accept_result(nullptr, error).descriptor);
}
UnixConn UnixListener::accept(const Context& context) {
  std::error_code error;
  UnixConn conn = accept(context, error);
  if (error) fail_to_accept(error);
  return conn;
}
UnixConn UnixListener::accept(const Context& context, std::error_code& error) {
  return UnixConn(accept_result(&context, error).descriptor);
}

}  // namespace magpie::net
