// tls.h: TLS 1.2 and 1.3 over TCP (OpenSSL). In the library magpie::tls.
//
// Certificates are verified unless an option says otherwise. The first read or write, or
// handshake(), does the handshake, so a slow peer never holds up accept(). Errors of TLS are
// std::system_error of tls_errors(), with a text that says what is wrong.
//
// As with other streams, every call that may fail has a form with a std::error_code& at the end,
// which does not throw, and every call that may block has a form with a Context, which ends with
// the context's error as soon as the context is over.
#pragma once

#include <magpie/detail/cxx20.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <magpie/detail/api.h>
#include <magpie/net/tcp.h>

namespace magpie::net {

MAGPIE_API const std::error_category& tls_errors();

enum class TlsVersion { tls_1_2, tls_1_3 };

// A certificate and its key.
struct TlsIdentity {
  std::string certificate_file = {};  // PEM, its own first, then those up to a root
  std::string key_file = {};          // PEM
};

// What clients trust and offer. Share one among connections: it keeps their sessions, so that the
// next connection to the same host begins faster. Copies share.
class MAGPIE_API TlsClientConfig {
 public:
  struct Options {
    bool verify = true;                  // the peer's certificate, and that it is for that name
    std::string ca_file = {};            // trusted roots; empty: those of the system
    std::vector<std::string> alpn = {};  // protocols, the best first; empty: none is proposed
    // For servers that ask for a certificate; empty: none.
    TlsIdentity identity = {};
    TlsVersion min_version = TlsVersion::tls_1_2;
    // As OpenSSL writes them. Empty: of TLS 1.2 those with forward secrecy, of TLS 1.3 OpenSSL's.
    std::string ciphers = {};       // TLS 1.2
    std::string ciphersuites = {};  // TLS 1.3
  };
  // Throws std::system_error, for instance for a file that cannot be read
  // (errc::no_such_file_or_directory, ...).
  explicit TlsClientConfig(const Options& options);
  TlsClientConfig() : TlsClientConfig(Options()) {}
  // Without exceptions. After an error it is empty, and connections with it fail with
  // errc::invalid_argument.
  TlsClientConfig(const Options& options, std::error_code& error);

  struct State;
  const std::shared_ptr<State>& state() const { return state_; }

 private:
  std::shared_ptr<State> state_;
};

// Whether a server wants its clients' certificates.
enum class TlsClientAuth {
  none,
  request,  // a client may send none; a certificate that it sends has to be good
  require
};

// A server's certificates and how it speaks. Copies share.
class MAGPIE_API TlsServerConfig {
 public:
  struct Options {
    std::string certificate_file = {};   // PEM, its own first, then those up to a root
    std::string key_file = {};           // PEM
    std::vector<std::string> alpn = {};  // protocols, the best first; empty: no choice is made
    // More certificates. A client gets the one for the name it asks for (SNI), also by a wildcard,
    // and the one above if there is none.
    std::vector<TlsIdentity> more_identities = {};
    TlsClientAuth client_auth = TlsClientAuth::none;
    std::string client_ca_file = {};  // roots for clients; needed unless client_auth is none
    TlsVersion min_version = TlsVersion::tls_1_2;
    // As OpenSSL writes them. Empty: of TLS 1.2 those with forward secrecy, of TLS 1.3 OpenSSL's.
    std::string ciphers = {};       // TLS 1.2
    std::string ciphersuites = {};  // TLS 1.3
    // The key that seals tickets (sessions that clients keep) is replaced after this time, and
    // forgotten after twice this time.
    std::chrono::milliseconds ticket_key_lifetime = std::chrono::hours(6);
    // A new connection checks whether the files have changed, at most this often, and reads them
    // again. 0: never.
    std::chrono::milliseconds check_files_every = std::chrono::seconds(1);
    // Called once per change for changed files that make no sense; the old certificates stay. The
    // default prints to stderr.
    std::function<void(const std::exception&)> on_reload_error = {};
  };
  // Throws std::system_error if a file cannot be read or the key does not fit,
  // std::invalid_argument for options that contradict each other.
  explicit TlsServerConfig(const Options& options);
  // Without exceptions; options that contradict each other are errc::invalid_argument. After an
  // error it is empty, and listening and connections with it fail with errc::invalid_argument.
  TlsServerConfig(const Options& options, std::error_code& error);

  // Reads the files again, for connections that begin from now on. Throws as the constructor; then
  // nothing has changed. Throws std::invalid_argument if it is empty.
  void reload() const;
  void reload(std::error_code& error) const;

  struct State;
  const std::shared_ptr<State>& state() const { return state_; }

 private:
  std::shared_ptr<State> state_;
};

// What a peer's certificate says.
struct TlsCertificate {
  std::string subject;      // "CN=Ada,O=Example", as RFC 2253 writes it
  std::string issuer;       // the same
  std::string common_name;  // of the subject; empty: none. Do not identify a peer by it
  std::vector<std::string> dns_names, ip_addresses, emails, uris;  // the subject's other names
  std::string serial;                                              // hexadecimal
  std::string sha256;  // of the whole certificate, hexadecimal
  std::chrono::system_clock::time_point not_before, not_after;
};

// A TLS connection. Movable; the destructor closes it. An empty one comes from the default
// constructor, a move or an error; calls on it fail with errc::bad_file_descriptor.
class MAGPIE_API TlsConn : public Stream {
 public:
  TlsConn() noexcept;
  // Connects as TcpConn::connect and does the handshake; the certificate must be for that host.
  // Blocks. Throws as both.
  static TlsConn connect(std::string_view host_and_port,
                         const TlsClientConfig& config = TlsClientConfig());
  static TlsConn connect(std::string_view host_and_port, std::error_code& error);
  static TlsConn connect(std::string_view host_and_port, const TlsClientConfig& config,
                         std::error_code& error);
  static TlsConn connect(std::string_view host_and_port, const TlsClientConfig& config,
                         const Context& context);
  static TlsConn connect(std::string_view host_and_port, const TlsClientConfig& config,
                         const Context& context, std::error_code& error);
  // As above, until time is up: errc::timed_out.
  template <class Rep, class Period>
  static TlsConn connect(std::string_view host_and_port, const TlsClientConfig& config,
                         std::chrono::duration<Rep, Period> timeout) {
    return connect_until_ns(host_and_port, config, detail::deadline_after(timeout));
  }
  template <class Rep, class Period>
  static TlsConn connect(std::string_view host_and_port, const TlsClientConfig& config,
                         std::chrono::duration<Rep, Period> timeout, std::error_code& error) {
    return connect_until_ns(host_and_port, config, detail::deadline_after(timeout), error);
  }
  // As above, until a time of any clock.
  template <class Clock, class Duration>
  static TlsConn connect(std::string_view host_and_port, const TlsClientConfig& config,
                         std::chrono::time_point<Clock, Duration> deadline) {
    return connect_until_ns(host_and_port, config, detail::deadline_at(deadline));
  }
  template <class Clock, class Duration>
  static TlsConn connect(std::string_view host_and_port, const TlsClientConfig& config,
                         std::chrono::time_point<Clock, Duration> deadline,
                         std::error_code& error) {
    return connect_until_ns(host_and_port, config, detail::deadline_at(deadline), error);
  }
  // Over an existing connection. The peer's certificate has to be for `host`. Throw
  // std::system_error, and std::invalid_argument for a host that begins with a dot or has a zero
  // byte; then the connection is closed.
  static TlsConn client(TcpConn conn, const std::string& host, const TlsClientConfig& config);
  static TlsConn client(TcpConn conn, const std::string& host, const TlsClientConfig& config,
                        std::error_code& error);
  static TlsConn server(TcpConn conn, const TlsServerConfig& config);
  static TlsConn server(TcpConn conn, const TlsServerConfig& config, std::error_code& error);

  TlsConn(TlsConn&&) noexcept;
  TlsConn& operator=(TlsConn&&) noexcept;
  ~TlsConn() override;

  // Blocks until both sides agree; does nothing if they did. Reads and writes, so the deadline of
  // either direction ends it. Throws std::system_error.
  void handshake();
  void handshake(std::error_code& error);
  void handshake(const Context& context);
  void handshake(const Context& context, std::error_code& error);

  // A stream that ends without TLS's close_notify was cut off: an error, not an end. After the
  // handshake a read never waits for a write. A peer that only ever changes its keys is refused:
  // errc::protocol_error. Reads may go on after a context or a deadline has ended one.
  std::size_t read(std::span<std::byte> into) override;
  // After an error nothing more can be written: half a record may be on its way.
  void write_parts(Parts parts) override;
  void shutdown_write() override;
  void wait_readable() override;
  using Stream::read;
  using Stream::shutdown_write;
  using Stream::wait_readable;
  using Stream::write;
  using Stream::write_parts;
  void close() noexcept override;

  Address remote_address() const override;
  Address remote_address(std::error_code& error) const;
  int native_handle() const noexcept override;
  // Not empty, and close() was not called.
  bool is_open() const noexcept;

  Result read_result(std::span<std::byte> into, const Context* context) override;
  Result write_result(Parts parts, const Context* context) override;
  std::error_code shutdown_write_result() override;
  std::error_code wait_readable_result(const Context* context) override;

  // Takes in what the peer has sent. Never blocks. True: it was only TLS's own messages (tickets,
  // new keys), and the stream goes on. False: there are bytes to read, another goroutine reads, or
  // the stream has ended or failed; do not ask again.
  bool check_idle() noexcept;

  // After the handshake.
  std::string alpn() const;         // the protocol both agreed on; empty: none
  std::string version() const;      // "TLSv1.3"
  std::string cipher() const;       // "TLS_AES_256_GCM_SHA384"
  bool was_resumed() const;         // with the session of an earlier connection
  std::string server_name() const;  // what the client asked for; empty: nothing
  // Nullopt: the peer has sent none. A client's certificate that was not verified does not say who
  // the client is.
  std::optional<TlsCertificate> peer_certificate() const;

  Address local_address() const;
  Address local_address(std::error_code& error) const;

  class Session;  // src/tls/session.h

 private:
  void do_set_read_deadline(TimePoint time) noexcept override;
  void do_set_write_deadline(TimePoint time) noexcept override;
  static TlsConn connect_until_ns(std::string_view host_and_port, const TlsClientConfig& config,
                                  detail::DeadlineNs deadline);
  static TlsConn connect_until_ns(std::string_view host_and_port, const TlsClientConfig& config,
                                  detail::DeadlineNs deadline, std::error_code& error);

  explicit TlsConn(std::unique_ptr<Session> session) noexcept;
  Session& session(const char* what) const;

  std::unique_ptr<Session> session_;  // null: empty
};

// Accepts TLS connections. Movable; the destructor closes it. Calls on an empty one fail as those
// of TlsConn.
class MAGPIE_API TlsListener {
 public:
  TlsListener() noexcept = default;
  // As TcpListener::bind.
  static TlsListener bind(std::string_view host_and_port, const TlsServerConfig& config);
  static TlsListener bind(std::string_view host_and_port, const TlsServerConfig& config,
                          std::error_code& error);
  static TlsListener bind(std::string_view host_and_port, const TlsServerConfig& config,
                          const Context& context);
  static TlsListener bind(std::string_view host_and_port, const TlsServerConfig& config,
                          const Context& context, std::error_code& error);

  // Blocks until a peer connects; the handshake is still to be done. Throws as
  // TcpListener::accept().
  TlsConn accept();
  TlsConn accept(std::error_code& error);
  TlsConn accept(const Context& context);
  TlsConn accept(const Context& context, std::error_code& error);
  Address local_address() const { return listener_.local_address(); }
  Address local_address(std::error_code& error) const { return listener_.local_address(error); }
  void close() noexcept { listener_.close(); }
  // From that time on accept() fails with errc::timed_out; TimePoint::max() removes the deadline.
  template <class Clock, class Duration>
  void set_deadline(std::chrono::time_point<Clock, Duration> time) noexcept {
    listener_.set_deadline(time);
  }
  template <class Rep, class Period>
  void set_deadline(std::chrono::duration<Rep, Period> from_now) noexcept {
    listener_.set_deadline(from_now);
  }

 private:
  TlsListener(TcpListener listener, const TlsServerConfig& config)
      : listener_(std::move(listener)), config_(config) {}
  TcpListener listener_;
  std::optional<TlsServerConfig> config_;  // none: empty
};

}  // namespace magpie::net
