// tls.h: TLS 1.2 and 1.3 over TCP (OpenSSL). In the library magpie::tls.
//
// Certificates are verified unless one asks not to. The handshake is done by the first read or write, or by handshake(), so
// that a slow peer never holds up accept(). Errors of TLS are std::system_error of tls_errors(), with what is wrong in words.
//
// As with other streams, every call that may fail exists once more with a std::error_code& at the end, which does not throw, and
// every call that may block once more with a Context: it ends as soon as that is over, with the context's error.
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

#include <magpie/net/tcp.h>

namespace magpie::net {

const std::error_category& tls_errors();

enum class TlsVersion { tls_1_2, tls_1_3 };

// A certificate and its key.
struct TlsIdentity {
  std::string certificate_file = {};  // PEM, its own first, then those up to a root
  std::string key_file = {};          // PEM
};

// What clients trust and say. Share one among connections: it keeps their sessions, so that the next to the same host begins
// faster. Copies share.
class TlsClientConfig {
 public:
  struct Options {
    bool verify = true;                  // the peer's certificate, and that it is for that name
    std::string ca_file = {};            // who is trusted; empty: whom the system trusts
    std::vector<std::string> alpn = {};  // protocols, the best first; empty: none is proposed
    // Ours, for servers that ask for one; empty: none.
    TlsIdentity identity = {};
    TlsVersion min_version = TlsVersion::tls_1_2;
    // As OpenSSL writes them. Empty: of TLS 1.2 those with forward secrecy, of TLS 1.3 OpenSSL's.
    std::string ciphers = {};       // TLS 1.2
    std::string ciphersuites = {};  // TLS 1.3
  };
  // Throws std::system_error, for instance for a file that cannot be read (errc::no_such_file_or_directory, ...).
  explicit TlsClientConfig(const Options& options);
  TlsClientConfig() : TlsClientConfig(Options()) {}

  struct State;
  const std::shared_ptr<State>& state() const { return state_; }

 private:
  std::shared_ptr<State> state_;
};

// Whether a server wants its clients' certificates.
enum class TlsClientAuth {
  none,
  request,  // one that is sent has to be good; a client may send none
  require
};

// A server's certificates, and how it speaks. Copies share.
class TlsServerConfig {
 public:
  struct Options {
    std::string certificate_file = {};   // PEM, its own first, then those up to a root
    std::string key_file = {};           // PEM
    std::vector<std::string> alpn = {};  // protocols, the best first; empty: no choice is made
    // More of them. A client gets the one for the name it asks for (SNI), also by a wildcard, and the one above if there is
    // none.
    std::vector<TlsIdentity> more_identities = {};
    TlsClientAuth client_auth = TlsClientAuth::none;
    std::string client_ca_file = {};  // who vouches for clients; needed unless client_auth is none
    TlsVersion min_version = TlsVersion::tls_1_2;
    // As OpenSSL writes them. Empty: of TLS 1.2 those with forward secrecy, of TLS 1.3 OpenSSL's.
    std::string ciphers = {};       // TLS 1.2
    std::string ciphersuites = {};  // TLS 1.3
    // The key that seals tickets (sessions that clients keep) is replaced after this time, and forgotten after twice of it.
    std::chrono::milliseconds ticket_key_lifetime = std::chrono::hours(6);
    // New connections look whether the files have changed, at most so often, and read them again. 0: never.
    std::chrono::milliseconds check_files_every = std::chrono::seconds(1);
    // Told, once per change, of changed files that make no sense: the old certificates stay. By default it is said on stderr.
    std::function<void(const std::exception&)> on_reload_error = {};
  };
  // Throws std::system_error if a file cannot be read or the key does not fit, std::invalid_argument for options that do
  // not go together.
  explicit TlsServerConfig(const Options& options);

  // Reads the files again, for connections that begin from now on. Throws as the constructor: then nothing has changed.
  void reload() const;

  struct State;
  const std::shared_ptr<State>& state() const { return state_; }

 private:
  std::shared_ptr<State> state_;
};

// What a peer's certificate says.
struct TlsCertificate {
  std::string subject;      // "CN=Ada,O=Example", as RFC 2253 writes it
  std::string issuer;       // the same
  std::string common_name;  // of the subject; empty: none. Not for checking whose it is
  std::vector<std::string> dns_names, ip_addresses, emails, uris;  // the subject's other names
  std::string serial;                                              // hexadecimal
  std::string sha256;  // of the whole certificate, hexadecimal
  std::chrono::system_clock::time_point not_before, not_after;
};

// Moves; the destructor closes it. Calls on an empty one, made by its default constructor, left behind by a move or by an
// error, fail with errc::bad_file_descriptor.
class TlsConn : public Stream {
 public:
  TlsConn() noexcept;
  // As TcpConn::connect; the certificate must be for that host. The handshake is done. Throws as both.
  static TlsConn connect(std::string_view host_and_port,
                         const TlsClientConfig& config = TlsClientConfig());
  static TlsConn connect(std::string_view host_and_port, const TlsClientConfig& config,
                         std::error_code& error);
  static TlsConn connect(std::string_view host_and_port, const TlsClientConfig& config,
                         const Context& context);
  static TlsConn connect(std::string_view host_and_port, const TlsClientConfig& config,
                         const Context& context, std::error_code& error);
  // The same within a time: errc::timed_out.
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
  // The same until a time.
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
  // Over a connection that is there. `host`: whose certificate it has to be.
  static TlsConn client(TcpConn conn, const std::string& host, const TlsClientConfig& config);
  static TlsConn server(TcpConn conn, const TlsServerConfig& config);

  TlsConn(TlsConn&&) noexcept;
  TlsConn& operator=(TlsConn&&) noexcept;
  ~TlsConn() override;

  // Blocks until both sides agree; nothing if they did. It reads and writes, so the deadline of either side ends it. Throws
  // std::system_error.
  void handshake();
  void handshake(std::error_code& error);
  void handshake(const Context& context);
  void handshake(const Context& context, std::error_code& error);

  // A stream that ends without TLS's own farewell was cut off: an error, not an end. After the handshake a read never waits
  // until something is written. A peer that only ever changes its keys is refused: errc::protocol_error. Reads may go on
  // after a context or a deadline has ended one.
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
  int native_handle() const noexcept override;
  // Not empty, and close() was not called.
  bool is_open() const noexcept;

  Result read_result(std::span<std::byte> into, const Context* context) override;
  Result write_result(Parts parts, const Context* context) override;
  std::error_code shutdown_write_result() override;
  std::error_code wait_readable_result(const Context* context) override;

  // Takes in what the peer has sent, and does not block. True: nothing but words of TLS itself (tickets, new keys), and the
  // stream goes on. False: there are bytes to read, somebody reads, or it has ended or failed: not to be asked again.
  bool check_idle() noexcept;

  // After the handshake.
  std::string alpn() const;         // the protocol both agreed on; empty: none
  std::string version() const;      // "TLSv1.3"
  std::string cipher() const;       // "TLS_AES_256_GCM_SHA384"
  bool was_resumed() const;         // with the session of an earlier connection
  std::string server_name() const;  // what the client asked for; empty: nothing
  // None: it has sent none. A client's that was not verified says nothing about who it is.
  std::optional<TlsCertificate> peer_certificate() const;

  Address local_address() const;

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

// Moves; the destructor closes it. Empty ones are as those of TlsConn.
class TlsListener {
 public:
  TlsListener() noexcept = default;
  // As TcpListener::bind.
  static TlsListener bind(std::string_view host_and_port, const TlsServerConfig& config);
  static TlsListener bind(std::string_view host_and_port, const TlsServerConfig& config,
                          std::error_code& error);

  // Blocks until somebody connects; the handshake is still to be done. Throws as TcpListener::accept().
  TlsConn accept();
  TlsConn accept(std::error_code& error);
  TlsConn accept(const Context& context);
  TlsConn accept(const Context& context, std::error_code& error);
  Address local_address() const { return listener_.local_address(); }
  Address local_address(std::error_code& error) const { return listener_.local_address(error); }
  void close() noexcept { listener_.close(); }
  // From then on accept() fails with errc::timed_out; TimePoint::max() takes it away.
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
