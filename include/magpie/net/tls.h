// tls.h: TLS 1.2 and 1.3 over TCP (OpenSSL). In the library magpie::tls.
//
// Certificates are verified unless one asks not to. The handshake is done by the first read or write, or by handshake(), so
// that a slow peer never holds up accept(). Errors of TLS are std::system_error of tls_errors(), with what is wrong in words.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <magpie/net/tcp.h>

namespace magpie::net {

const std::error_category& tls_errors();

// What clients trust and say. Share one among connections: it keeps their sessions, so that the next to the same host begins
// faster. Copies share.
class TlsClientConfig {
 public:
  struct Options {
    bool verify = true;             // the peer's certificate, and that it is for that name
    std::string ca_file;            // who is trusted; empty: whom the system trusts
    std::vector<std::string> alpn;  // protocols, the best first; empty: none is proposed
  };
  // Throws std::system_error, for instance for a file that cannot be read.
  explicit TlsClientConfig(const Options& options);
  TlsClientConfig() : TlsClientConfig(Options()) {}

  struct State;
  const std::shared_ptr<State>& state() const { return state_; }

 private:
  std::shared_ptr<State> state_;
};

// A server's certificate. Copies share.
class TlsServerConfig {
 public:
  struct Options {
    std::string certificate_file;   // PEM, its own first, then those up to a root
    std::string key_file;           // PEM
    std::vector<std::string> alpn;  // protocols, the best first; empty: no choice is made
  };
  // Throws std::system_error if a file cannot be read or the key does not fit.
  explicit TlsServerConfig(const Options& options);

  struct State;
  const std::shared_ptr<State>& state() const { return state_; }

 private:
  std::shared_ptr<State> state_;
};

// Moves; the destructor closes it.
class TlsConn : public Stream {
 public:
  // As TcpConn::connect; the certificate must be for that host. The handshake is done. Throws as both.
  static TlsConn connect(std::string_view host_and_port,
                         const TlsClientConfig& config = TlsClientConfig());
  static TlsConn connect_until(std::string_view host_and_port, const TlsClientConfig& config,
                               detail::DeadlineNs deadline);
  // Over a connection that is there. `host`: whose certificate it has to be.
  static TlsConn client(TcpConn conn, const std::string& host, const TlsClientConfig& config);
  static TlsConn server(TcpConn conn, const TlsServerConfig& config);

  TlsConn(TlsConn&&) noexcept;
  TlsConn& operator=(TlsConn&&) noexcept;
  ~TlsConn() override;

  // Blocks until both sides agree; nothing if they did. Throws std::system_error.
  void handshake();

  // A stream that ends without TLS's own farewell was cut off: an error, not an end.
  std::size_t read(std::span<std::byte> into) override;
  void write_parts(std::span<const std::span<const std::byte>> parts) override;
  using Stream::write;
  void shutdown_write() override;
  void close() noexcept override;
  void set_read_deadline_ns(detail::DeadlineNs deadline) noexcept override;
  void set_write_deadline_ns(detail::DeadlineNs deadline) noexcept override;

  void wait_readable() override;
  Address remote_address() const override;
  int native_handle() const noexcept override;

  // After the handshake.
  std::string alpn() const;     // the protocol both agreed on; empty: none
  std::string version() const;  // "TLSv1.3"
  bool was_resumed() const;     // with the session of an earlier connection

  Address local_address() const;

  class Session;  // src/tls/session.h

 private:
  explicit TlsConn(std::unique_ptr<Session> session) noexcept;
  std::unique_ptr<Session> session_;
};

class TlsListener {
 public:
  // As TcpListener::bind.
  static TlsListener bind(std::string_view host_and_port, const TlsServerConfig& config);

  // Blocks until somebody connects; the handshake is still to be done. Throws as TcpListener::accept().
  TlsConn accept();
  Address local_address() const { return listener_.local_address(); }
  void close() noexcept { listener_.close(); }

 private:
  TlsListener(TcpListener listener, const TlsServerConfig& config)
      : listener_(std::move(listener)), config_(config) {}
  TcpListener listener_;
  TlsServerConfig config_;
};

}  // namespace magpie::net
