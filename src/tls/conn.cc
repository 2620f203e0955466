// conn.cc: the public face of TLS connections.
#include <magpie/net/tls.h>

#include <openssl/ssl.h>

#include <new>
#include <utility>

#include "net/host_port.h"
#include "tls/peer.h"
#include "tls/session.h"

namespace magpie::net {

TlsConn::TlsConn(std::unique_ptr<Session> session) noexcept : session_(std::move(session)) {}
TlsConn::TlsConn(TlsConn&&) noexcept = default;
TlsConn& TlsConn::operator=(TlsConn&&) noexcept = default;
TlsConn::~TlsConn() = default;

TlsConn TlsConn::client(TcpConn conn, const std::string& host, const TlsClientConfig& config) {
  return TlsConn(std::make_unique<Session>(std::move(conn), host, config.state()));
}

TlsConn TlsConn::server(TcpConn conn, const TlsServerConfig& config) {
  return TlsConn(std::make_unique<Session>(std::move(conn), config.state()));
}

TlsConn TlsConn::connect_until(std::string_view host_and_port, const TlsClientConfig& config,
                               detail::DeadlineNs deadline) {
  TlsConn conn = client(TcpConn::connect_until(host_and_port, deadline),
                        split_host_port(host_and_port).host, config);
  conn.set_read_deadline_ns(deadline);
  conn.set_write_deadline_ns(deadline);
  conn.handshake();
  conn.set_read_deadline_ns(detail::kNoDeadline);
  conn.set_write_deadline_ns(detail::kNoDeadline);
  return conn;
}

TlsConn TlsConn::connect(std::string_view host_and_port, const TlsClientConfig& config) {
  return connect_until(host_and_port, config, detail::kNoDeadline);
}

void TlsConn::handshake() { session_->handshake(); }
std::size_t TlsConn::read(std::span<std::byte> into) { return session_->read(into); }
void TlsConn::write_parts(std::span<const std::span<const std::byte>> parts) {
  session_->write_parts(parts);
}
void TlsConn::shutdown_write() { session_->shutdown_write(); }
void TlsConn::close() noexcept {
  if (session_ != nullptr) session_->close();
}
void TlsConn::set_read_deadline_ns(detail::DeadlineNs deadline) noexcept {
  session_->set_deadline(Session::Side::reader, deadline);
}
void TlsConn::set_write_deadline_ns(detail::DeadlineNs deadline) noexcept {
  session_->set_deadline(Session::Side::writer, deadline);
}
void TlsConn::wait_readable() { session_->wait_readable(); }
bool TlsConn::check_idle() noexcept {
  try {
    return session_->check_idle();
  } catch (const std::bad_alloc&) {
    return false;
  }
}

std::string TlsConn::alpn() const {
  const unsigned char* protocol = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(session_->ssl(), &protocol, &size);
  return std::string(reinterpret_cast<const char*>(protocol), size);
}
std::string TlsConn::version() const { return SSL_get_version(session_->ssl()); }
std::string TlsConn::cipher() const { return SSL_get_cipher_name(session_->ssl()); }
bool TlsConn::was_resumed() const { return SSL_session_reused(session_->ssl()) == 1; }
std::string TlsConn::server_name() const {
  const char* name = SSL_get_servername(session_->ssl(), TLSEXT_NAMETYPE_host_name);
  return name == nullptr ? "" : name;
}
std::optional<TlsCertificate> TlsConn::peer_certificate() const {
  X509* certificate = SSL_get0_peer_certificate(session_->ssl());
  if (certificate == nullptr) return std::nullopt;
  return describe(certificate);
}

Address TlsConn::local_address() const { return session_->conn().local_address(); }
Address TlsConn::remote_address() const { return session_->conn().remote_address(); }
int TlsConn::native_handle() const noexcept { return session_->conn().native_handle(); }

TlsListener TlsListener::bind(std::string_view host_and_port, const TlsServerConfig& config) {
  return TlsListener(TcpListener::bind(host_and_port), config);
}

TlsConn TlsListener::accept() { return TlsConn::server(listener_.accept(), config_); }

}  // namespace magpie::net
