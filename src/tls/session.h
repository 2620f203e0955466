// session.h: one TLS connection.
//
// OpenSSL works on memory only: bytes from the network are put into one buffer, what it wants to send is taken out of another.
// So none of its calls blocks, and no goroutine moves to another thread inside one. Calls on the SSL object take
// turns by a lock that is not held while anybody waits for the network; reading and writing have turns of their own, so
// one goroutine may read while another writes.
#pragma once

#include <openssl/ssl.h>

#include <atomic>
#include <memory>
#include <string>

#include <magpie/mutex.h>
#include <magpie/net/tls.h>

#include "tls/openssl_error.h"

namespace magpie::net {

// OpenSSL's callback: a client's session that can be taken up again.
int keep_session(SSL* ssl, SSL_SESSION* session);

class TlsConn::Session {
 public:
  Session(TcpConn conn, const std::string& host, std::shared_ptr<TlsClientConfig::State> config);
  Session(TcpConn conn, std::shared_ptr<TlsServerConfig::State> config);
  ~Session() { close(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void handshake();
  std::size_t read(std::span<std::byte> into);
  void write_parts(std::span<const std::span<const std::byte>> parts);
  void wait_readable();
  void shutdown_write();
  void close() noexcept;

  TcpConn& conn() { return conn_; }
  const SSL* ssl() const { return ssl_.get(); }
  void remember(SSL_SESSION* session);

 private:
  struct FreeSsl {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };
  enum class Outcome { done, wants_bytes, ended, failed };

  explicit Session(TcpConn conn) : conn_(std::move(conn)) {}
  void create(SSL_CTX* context);
  void name_peer(const std::string& host);

  // One call of OpenSSL's on the object, under the lock. `error` tells what failed.
  template <class Call>
  Outcome call(Call f, OpensslError& error);
  // Blocks for bytes of the network. False: the stream has ended.
  bool receive();
  // Sends what OpenSSL wants to send.
  void flush();
  void flush_in_turn();
  std::string take_output();
  [[noreturn]] void fail(const OpensslError& error, const char* what);
  [[noreturn]] void cut_off();
  void refuse_if_closed() const;

  TcpConn conn_;
  std::shared_ptr<TlsClientConfig::State> client_;  // null: a server
  std::shared_ptr<TlsServerConfig::State> server_;  // null: a client
  std::string host_;                                // the client's peer
  std::unique_ptr<SSL, FreeSsl> ssl_;
  BIO* input_ = nullptr;   // the SSL object's
  BIO* output_ = nullptr;  //

  Mutex read_turn_, write_turn_, handshake_turn_;
  Mutex lock_;                       // guards ssl_ and its two buffers
  std::atomic<bool> agreed_{false};  // atomic, published: the handshake is done
  // atomic, published: before the farewell, so whoever reads the peer's answer to it sees it
  std::atomic<bool> closed_{false};
};

}  // namespace magpie::net
