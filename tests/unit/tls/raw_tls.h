// raw_tls.h: a TLS peer for tests that does what ours does not.
#pragma once

#include <magpie/net/tcp.h>
#include <openssl/ssl.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "support/certificate.h"

namespace magpie::support {

// Speaks over a TCP connection. What it says is kept until send().
class RawTls {
 public:
  // A client; with ciphers it speaks TLS 1.2.
  explicit RawTls(net::TcpConn conn, const char* ciphers = nullptr)
      : conn_(std::move(conn)), context_(SSL_CTX_new(TLS_client_method())) {
    if (ciphers != nullptr) {
      SSL_CTX_set_max_proto_version(context_.get(), TLS1_2_VERSION);
      SSL_CTX_set_cipher_list(context_.get(), ciphers);
    }
    begin();
    SSL_set_connect_state(ssl_.get());
  }
  // A server.
  RawTls(net::TcpConn conn, const Certificate& certificate)
      : conn_(std::move(conn)), context_(SSL_CTX_new(TLS_server_method())) {
    SSL_CTX_use_certificate_file(context_.get(), certificate.certificate.c_str(), SSL_FILETYPE_PEM);
    SSL_CTX_use_PrivateKey_file(context_.get(), certificate.key.c_str(), SSL_FILETYPE_PEM);
    begin();
    SSL_set_accept_state(ssl_.get());
  }

  // The first step of a handshake, without an answer. To be sent.
  void greet() { (void)SSL_do_handshake(ssl_.get()); }
  // Blocks. False: the other side does not want to.
  bool handshake() {
    for (;;) {
      int result = SSL_do_handshake(ssl_.get());
      send();
      if (result == 1) return true;
      if (SSL_get_error(ssl_.get(), result) != SSL_ERROR_WANT_READ) return false;
      if (!receive()) return false;
    }
  }
  // New keys, and a wish for the peer's.
  void update_keys() {
    SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_REQUESTED);
    (void)SSL_do_handshake(ssl_.get());
  }
  void say(std::string_view text) {
    (void)SSL_write(ssl_.get(), text.data(), static_cast<int>(text.size()));
  }
  void say_farewell() { (void)SSL_shutdown(ssl_.get()); }
  void send() {
    if (std::string bytes = take_output(); !bytes.empty()) conn_.write(bytes);
  }
  // These two return whether there was anything to send.
  bool send_half() {
    std::string bytes = take_output();
    conn_.write(std::string_view(bytes).substr(0, bytes.size() / 2));
    return !bytes.empty();
  }
  bool send_changed() {
    std::string bytes = take_output();
    if (bytes.empty()) return false;
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 4);
    conn_.write(bytes);
    return true;
  }
  // Blocks until so many bytes have come.
  std::string hear(std::size_t size) {
    std::string heard;
    while (heard.size() < size) {
      char some[100];
      int count = SSL_read(ssl_.get(), some, sizeof some);
      if (count > 0) {
        heard.append(some, static_cast<std::size_t>(count));
      } else if (SSL_get_error(ssl_.get(), count) != SSL_ERROR_WANT_READ || !receive()) {
        return heard + ", and no more";
      }
    }
    return heard;
  }

  net::TcpConn& conn() { return conn_; }

 private:
  void begin() {
    ssl_.reset(SSL_new(context_.get()));
    in_ = BIO_new(BIO_s_mem());
    out_ = BIO_new(BIO_s_mem());
    SSL_set_bio(ssl_.get(), in_, out_);
  }
  bool receive() {
    std::byte some[4096];
    std::size_t count = conn_.read(some);
    if (count != 0) BIO_write(in_, some, static_cast<int>(count));
    return count != 0;
  }
  std::string take_output() {
    std::string bytes(static_cast<std::size_t>(BIO_pending(out_)), '\0');
    if (!bytes.empty()) BIO_read(out_, bytes.data(), static_cast<int>(bytes.size()));
    return bytes;
  }

  struct Free {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };
  net::TcpConn conn_;
  std::unique_ptr<SSL_CTX, Free> context_;
  std::unique_ptr<SSL, Free> ssl_;
  BIO* in_ = nullptr;   // the SSL object's
  BIO* out_ = nullptr;  //
};

}  // namespace magpie::support
