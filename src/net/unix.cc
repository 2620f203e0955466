#include <magpie/net/unix.h>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
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

// What connect(2) says, which is not what UnixConn::connect() says: a listener whose line is full
// is there.
[[gnu::noinline]] bool is_refused(const Descriptor& probe, const Address& address) {
  return connect(probe.fd(), address.data(), address.size()) != 0 && errno == ECONNREFUSED;
}

// A socket file that nobody listens at. Other files are refused too, and are nobody's to remove.
bool is_stale(const std::string& path, const Address& address) {
  struct stat status;
  if (lstat(path.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode)) return false;
  std::error_code error;
  std::unique_ptr<Descriptor> probe = open_unix(error);
  return !error && is_refused(*probe, address);
}

std::unique_ptr<Descriptor> listen_unix(std::string_view path, const UnixBindOptions& options,
                                        std::error_code& error) {
  Address address = Address::unix_path(path);
  std::unique_ptr<Descriptor> descriptor = open_unix(error);
  if (error) return nullptr;
  error = bind_to(*descriptor, address);
  if (error == std::errc::address_in_use && options.replace_stale && path.front() != '@' &&
      is_stale(std::string(path), address)) {
    unlink(std::string(path).c_str());
    error = bind_to(*descriptor, address);
  }
  if (!error) error = listen_on(*descriptor, options.backlog);
  return error ? nullptr : std::move(descriptor);
}

}  // namespace

// The time too, where the file system has it: numbers are used again.
UnixListener::File UnixListener::File::at(const std::string& path) noexcept {
  struct statx status {};
  if (statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, STATX_INO | STATX_BTIME, &status) != 0)
    return {};
  File file{.device = {status.stx_dev_major, status.stx_dev_minor}, .number = status.stx_ino};
  if ((status.stx_mask & STATX_BTIME) != 0)
    file.made = {status.stx_btime.tv_sec, status.stx_btime.tv_nsec};
  return file;
}

void UnixListener::remember_file(std::string_view path) {
  if (path.front() == '@') return;
  path_ = path;
  file_ = File::at(path_);
}

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
  listener.remember_file(path);
  return listener;
}
UnixListener UnixListener::bind(std::string_view path, const UnixBindOptions& options,
                                std::error_code& error) {
  UnixListener listener(without_throwing(error, [&] { return listen_unix(path, options, error); }));
  if (!error) listener.remember_file(path);
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
  file_ = other.file_;
  return *this;
}

// The file goes first: as long as the socket listens nobody takes the file for a stale one and puts
// another in its place.
void UnixListener::close() noexcept {
  if (!path_.empty() && File::at(path_) == file_) unlink(path_.c_str());
  path_.clear();
  Listener::close();
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
