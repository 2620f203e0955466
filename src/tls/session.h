// session.h: one TLS connection.
//
// OpenSSL works on memory only: bytes from the network are put into one buffer, what it wants to
// send is taken out of another. So none of its calls blocks, and no goroutine moves to another
// thread inside one. Calls on the SSL object take turns by a lock that is not held while anybody
// waits for the network; reading and writing have locks of their own, so one goroutine may read
// while another writes.
//
// Reading makes TLS write (answers to new keys, alerts). A read only offers such bytes to the
// system: what it does not take at once goes out with the next write. So a peer that does not read
// cannot hold up a read past its deadline. A handshake has to wait for both directions; until it is
// done the earlier of the two deadlines counts for both.
//
// A connection that waits for its peer gives back what its two buffers have grown to: a server has
// thousands of them. OpenSSL gives back its own (SSL_MODE_RELEASE_BUFFERS).
#pragma once

#include <openssl/ssl.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include <magpie/mutex.h>
#include <magpie/net/tls.h>

#include "tls/hello_length.h"
#include "tls/openssl_error.h"

namespace magpie::net {

class Identities;  // identities.h

// OpenSSL's callback: a client's session that can be taken up again.
int keep_session(SSL* ssl, SSL_SESSION* session);

class TlsConn::Session {
 public:
  Session(TcpConn conn, const std::string& host, std::shared_ptr<TlsClientConfig::State> config);
  Session(TcpConn conn, std::shared_ptr<TlsServerConfig::State> config);
  ~Session() { close(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // A context, if there is one, ends a wait with its error.
  void handshake(const Context* context = nullptr);
  std::size_t read(std::span<std::byte> into, const Context* context = nullptr);
  // `written`: how many bytes have gone out, also after an exception.
  void write_parts(Parts parts, const Context* context, std::size_t& written);
  void wait_readable(const Context* context = nullptr);
  void shutdown_write();
  void close() noexcept;
  bool check_idle();

  enum class Side { reader, writer };
  void set_deadline(Side side, TimePoint deadline) noexcept;

  const TcpConn& conn() const { return conn_; }
  const SSL* ssl() const { return ssl_.get(); }
  const Identities* identities() const { return identities_.get(); }
  const std::shared_ptr<TlsServerConfig::State>& server() const { return server_; }
  void remember(SSL_SESSION* session);

 private:
  struct FreeSsl {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };
  enum class Outcome { done, wants_bytes, ended, failed };

  explicit Session(TcpConn conn) : conn_(std::move(conn)) {}
  void create(SSL_CTX* context);
  void name_peer(const std::string& host);
  static void note_message(int is_written, int version, int type, const void* bytes,
                           std::size_t size, SSL* ssl, void* session);

  std::unique_lock<Mutex> lock(Mutex& mutex, const Context* context, const char* what) const;
  // One call of OpenSSL's on the object, under the lock. `error` tells what failed.
  template <class Call>
  Outcome call(Call f, OpensslError& error);
  // Blocks for bytes of the network. False: the stream has ended.
  bool receive(const Context* context);
  void feed(std::span<const std::byte> bytes);
  // Of the buffers that are empty, and have room for more than that.
  void give_buffers_back(std::size_t kept);
  void refuse_long_hello_locked(std::span<const std::byte> bytes);
  // With write_mutex_: blocks until all that OpenSSL wants to send is sent.
  void flush(const Context* context = nullptr);
  // Sends what the system takes at once.
  void offer_output() noexcept;
  void try_offer_output() noexcept;
  std::string take_output();
  // The peer says things that only TLS itself understands, and too many of them.
  bool is_talking_idly_locked() const;
  void apply_deadlines_locked() noexcept;
  [[noreturn]] void fail(const OpensslError& error, const char* what);
  [[noreturn]] void cut_off(const char* what);
  void refuse_if_closed(const char* what) const;
  void refuse_if_too_late(const Context* context);
  std::string about(const char* what) const;

  TcpConn conn_;
  std::shared_ptr<TlsClientConfig::State> client_;  // null: a server
  std::shared_ptr<TlsServerConfig::State> server_;  // null: a client
  std::shared_ptr<const Identities> identities_;    // a server's
  std::string peer_;                                // "host:port"
  bool verifies_ = false;
  std::unique_ptr<SSL, FreeSsl> ssl_;
  BIO* input_ = nullptr;   // the SSL object's
  BIO* output_ = nullptr;  //

  Mutex read_mutex_, write_mutex_, handshake_mutex_;
  // guarded by write_mutex_
  std::string unsent_;  // records, from their first byte that the system has not taken
  bool cut_ = false;    // a write has failed, maybe within a record

  Mutex lock_;     // guards ssl_, its two buffers and:
  int words_ = 0;  // messages of TLS itself since the handshake, or the last byte for the reader
  HelloLength hello_;  // of a server, until the handshake is done

  // Held over calls on the descriptor's number that do not go through conn_, and by close(): the
  // number is not given back under them.
  Mutex number_lock_;

  Mutex deadline_lock_;
  // guarded by deadline_lock_: what was asked for
  TimePoint read_deadline_ = TimePoint::max();
  TimePoint write_deadline_ = TimePoint::max();

  std::atomic<bool> agreed_{false};  // atomic, published: the handshake is done
  // atomic, published: before the farewell, so a reader of the peer's answer to it sees it
  std::atomic<bool> closed_{false};
};

}  // namespace magpie::net
