// conn.cc: the public face of TLS connections.
#include <magpie/net/tls.h>

#include <magpie/context.h>
#include <openssl/ssl.h>

#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include "net/error_code.h"
#include "net/host_port.h"
#include "tls/config.h"
#include "tls/peer.h"
#include "tls/session.h"

namespace magpie::net {

TlsConn::TlsConn() noexcept = default;
TlsConn::TlsConn(std::unique_ptr<Session> session) noexcept : session_(std::move(session)) {}
TlsConn::TlsConn(TlsConn&&) noexcept = default;
TlsConn& TlsConn::operator=(TlsConn&&) noexcept = default;
TlsConn::~TlsConn() = default;

TlsConn::Session& TlsConn::session(const char* what) const {
  if (session_ == nullptr)
    throw std::system_error(std::make_error_code(std::errc::bad_file_descriptor),
                            std::string("magpie: TLS ") + what);
  return *session_;
}

// ---- connecting

TlsConn TlsConn::client(TcpConn conn, const std::string& host, const TlsClientConfig& config) {
  return TlsConn(std::make_unique<Session>(std::move(conn), host, state_of(config)));
}

TlsConn TlsConn::server(TcpConn conn, const TlsServerConfig& config) {
  return TlsConn(std::make_unique<Session>(std::move(conn), state_of(config)));
}

TlsConn TlsConn::client(TcpConn conn, const std::string& host, const TlsClientConfig& config,
                        std::error_code& error) {
  return with_error_code(error, [&] { return client(std::move(conn), host, config); });
}

TlsConn TlsConn::server(TcpConn conn, const TlsServerConfig& config, std::error_code& error) {
  return with_error_code(error, [&] { return server(std::move(conn), config); });
}

TlsConn TlsConn::connect_until_ns(std::string_view host_and_port, const TlsClientConfig& config,
                                  detail::DeadlineNs deadline) {
  TimePoint time = detail::steady_time(deadline);
  TlsConn conn =
      client(TcpConn::connect(host_and_port, time), split_host_port(host_and_port).host, config);
  conn.set_deadline(time);
  conn.handshake();
  conn.set_deadline(TimePoint::max());
  return conn;
}
TlsConn TlsConn::connect_until_ns(std::string_view host_and_port, const TlsClientConfig& config,
                                  detail::DeadlineNs deadline, std::error_code& error) {
  return with_error_code(error, [&] { return connect_until_ns(host_and_port, config, deadline); });
}

TlsConn TlsConn::connect(std::string_view host_and_port, const TlsClientConfig& config) {
  return connect_until_ns(host_and_port, config, detail::kNoDeadline);
}
TlsConn TlsConn::connect(std::string_view host_and_port, std::error_code& error) {
  return with_error_code(error, [&] { return connect(host_and_port); });
}
TlsConn TlsConn::connect(std::string_view host_and_port, const TlsClientConfig& config,
                         std::error_code& error) {
  return with_error_code(error, [&] { return connect(host_and_port, config); });
}
TlsConn TlsConn::connect(std::string_view host_and_port, const TlsClientConfig& config,
                         const Context& context) {
  TlsConn conn =
      client(TcpConn::connect(host_and_port, context), split_host_port(host_and_port).host, config);
  conn.handshake(context);
  return conn;
}
TlsConn TlsConn::connect(std::string_view host_and_port, const TlsClientConfig& config,
                         const Context& context, std::error_code& error) {
  return with_error_code(error, [&] { return connect(host_and_port, config, context); });
}

// ---- reading and writing

void TlsConn::handshake() { session("handshake").handshake(); }
void TlsConn::handshake(std::error_code& error) {
  with_error_code(error, [&] { handshake(); });
}
void TlsConn::handshake(const Context& context) { session("handshake").handshake(&context); }
void TlsConn::handshake(const Context& context, std::error_code& error) {
  with_error_code(error, [&] { handshake(context); });
}

std::size_t TlsConn::read(std::span<std::byte> into) { return session("read").read(into); }
void TlsConn::write_parts(Parts parts) {
  std::size_t written = 0;
  session("write").write_parts(parts, nullptr, written);
}
void TlsConn::shutdown_write() { session("shutdown").shutdown_write(); }
void TlsConn::wait_readable() { session("wait").wait_readable(); }

Stream::Result TlsConn::read_result(std::span<std::byte> into, const Context* context) {
  Result result;
  result.bytes = with_error_code(result.error, [&] { return session("read").read(into, context); });
  return result;
}
Stream::Result TlsConn::write_result(Parts parts, const Context* context) {
  Result result;
  with_error_code(result.error,
                  [&] { session("write").write_parts(parts, context, result.bytes); });
  return result;
}
std::error_code TlsConn::shutdown_write_result() {
  std::error_code error;
  with_error_code(error, [&] { shutdown_write(); });
  return error;
}
std::error_code TlsConn::wait_readable_result(const Context* context) {
  std::error_code error;
  with_error_code(error, [&] { session("wait").wait_readable(context); });
  return error;
}

void TlsConn::close() noexcept {
  if (session_ != nullptr) session_->close();
}
bool TlsConn::is_open() const noexcept {
  return session_ != nullptr && session_->conn().native_handle() >= 0;
}
void TlsConn::do_set_read_deadline(TimePoint time) noexcept {
  if (session_ != nullptr) session_->set_deadline(Session::Side::reader, time);
}
void TlsConn::do_set_write_deadline(TimePoint time) noexcept {
  if (session_ != nullptr) session_->set_deadline(Session::Side::writer, time);
}
bool TlsConn::check_idle() noexcept {
  try {
    return session_ != nullptr && session_->check_idle();
  } catch (const std::bad_alloc&) {
    return false;
  }
}

std::string TlsConn::alpn() const {
  const unsigned char* protocol = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(session("connection").ssl(), &protocol, &size);
  return std::string(reinterpret_cast<const char*>(protocol), size);
}
std::string TlsConn::version() const { return SSL_get_version(session("connection").ssl()); }
std::string TlsConn::cipher() const { return SSL_get_cipher_name(session("connection").ssl()); }
bool TlsConn::was_resumed() const { return SSL_session_reused(session("connection").ssl()) == 1; }
std::string TlsConn::server_name() const {
  const char* name = SSL_get_servername(session("connection").ssl(), TLSEXT_NAMETYPE_host_name);
  return name == nullptr ? "" : name;
}
std::optional<TlsCertificate> TlsConn::peer_certificate() const {
  X509* certificate = SSL_get0_peer_certificate(session("connection").ssl());
  if (certificate == nullptr) return std::nullopt;
  return describe(certificate);
}

Address TlsConn::local_address() const { return session("connection").conn().local_address(); }
Address TlsConn::remote_address() const { return session("connection").conn().remote_address(); }
Address TlsConn::local_address(std::error_code& error) const {
  return with_error_code(error, [&] { return local_address(); });
}
Address TlsConn::remote_address(std::error_code& error) const {
  return with_error_code(error, [&] { return remote_address(); });
}
int TlsConn::native_handle() const noexcept {
  return session_ == nullptr ? -1 : session_->conn().native_handle();
}

// ---- listening

TlsListener TlsListener::bind(std::string_view host_and_port, const TlsServerConfig& config) {
  (void)state_of(config);
  return TlsListener(TcpListener::bind(host_and_port), config);
}

TlsListener TlsListener::bind(std::string_view host_and_port, const TlsServerConfig& config,
                              std::error_code& error) {
  return with_error_code(error, [&] { return bind(host_and_port, config); });
}

TlsListener TlsListener::bind(std::string_view host_and_port, const TlsServerConfig& config,
                              const Context& context) {
  (void)state_of(config);
  return TlsListener(TcpListener::bind(host_and_port, BindOptions(), context), config);
}

TlsListener TlsListener::bind(std::string_view host_and_port, const TlsServerConfig& config,
                              const Context& context, std::error_code& error) {
  return with_error_code(error, [&] { return bind(host_and_port, config, context); });
}

// An empty listener has no config, and its accept() throws first.
TlsConn TlsListener::accept() {
  TcpConn conn = listener_.accept();
  return TlsConn::server(std::move(conn), *config_);
}
TlsConn TlsListener::accept(std::error_code& error) {
  return with_error_code(error, [&] { return accept(); });
}
TlsConn TlsListener::accept(const Context& context) {
  TcpConn conn = listener_.accept(context);
  return TlsConn::server(std::move(conn), *config_);
}
TlsConn TlsListener::accept(const Context& context, std::error_code& error) {
  return with_error_code(error, [&] { return accept(context); });
}

}  // namespace magpie::net
