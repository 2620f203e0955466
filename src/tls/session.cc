#include "tls/session.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "tls/config.h"

namespace magpie::net {
namespace {

constexpr std::size_t kRecord = 16 * 1024;  // the most that TLS puts in one

bool is_number(const std::string& host) {
  unsigned char any[sizeof(in6_addr)];
  return inet_pton(AF_INET, host.c_str(), any) == 1 || inet_pton(AF_INET6, host.c_str(), any) == 1;
}

}  // namespace

int keep_session(SSL* ssl, SSL_SESSION* session) {
  static_cast<TlsConn::Session*>(SSL_get_app_data(ssl))->remember(session);
  return 1;  // it is ours now
}

void TlsConn::Session::remember(SSL_SESSION* session) {
  client_->sessions.put(host_, SavedSession(session));
}

TlsConn::Session::Session(TcpConn conn, const std::string& host,
                          std::shared_ptr<TlsClientConfig::State> config)
    : Session(std::move(conn)) {
  client_ = std::move(config);
  host_ = host + ':' + std::to_string(conn_.remote_address().port());
  create(client_->context.get());
  SSL_set_connect_state(ssl_.get());
  name_peer(host);
  if (SavedSession saved = client_->sessions.take(host_)) SSL_set_session(ssl_.get(), saved.get());
}

TlsConn::Session::Session(TcpConn conn, std::shared_ptr<TlsServerConfig::State> config)
    : Session(std::move(conn)) {
  server_ = std::move(config);
  create(server_->context.get());
  SSL_set_accept_state(ssl_.get());
}

void TlsConn::Session::create(SSL_CTX* context) {
  ERR_clear_error();
  ssl_.reset(SSL_new(context));
  if (ssl_ == nullptr) throw_openssl_error("SSL_new");
  input_ = BIO_new(BIO_s_mem());
  output_ = BIO_new(BIO_s_mem());
  if (input_ == nullptr || output_ == nullptr) {
    BIO_free(input_);
    BIO_free(output_);
    throw_openssl_error("BIO_new");
  }
  SSL_set_bio(ssl_.get(), input_, output_);
  SSL_set_app_data(ssl_.get(), this);
}

void TlsConn::Session::name_peer(const std::string& host) {
  bool named;
  if (is_number(host)) {
    named = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl_.get()), host.c_str()) == 1;
  } else {
    named = SSL_set1_host(ssl_.get(), host.c_str()) == 1 &&
            SSL_set_tlsext_host_name(ssl_.get(), host.c_str()) == 1;
  }
  if (!named) throw_openssl_error("the name " + host);
}

template <class Call>
TlsConn::Session::Outcome TlsConn::Session::call(Call f, OpensslError& error) {
  std::lock_guard hold(lock_);
  ERR_clear_error();
  int result = f(ssl_.get());
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_NONE:
      return Outcome::done;
    case SSL_ERROR_WANT_READ:
      return Outcome::wants_bytes;
    case SSL_ERROR_ZERO_RETURN:
      return Outcome::ended;
    default:
      error = OpensslError::take();
      return Outcome::failed;
  }
}

void TlsConn::Session::fail(const OpensslError& error, const char* what) {
  try {
    flush_in_turn();  // the alert that tells the peer
  } catch (const std::system_error&) {
  }
  std::string text = what;
  long verdict = SSL_get_verify_result(ssl_.get());
  if (client_ != nullptr && client_->verify && verdict != X509_V_OK) {
    text += std::string(": the certificate of ") + host_ + ": " +
            X509_verify_cert_error_string(verdict);
  }
  error.raise(text);
}

// Our own farewell may make the peer end the stream before close() has closed it: to those who wait that is close().
void TlsConn::Session::refuse_if_closed() const {
  if (closed_.load())
    throw std::system_error(std::make_error_code(std::errc::operation_canceled),
                            "magpie: TLS read");
}

void TlsConn::Session::cut_off() {
  refuse_if_closed();
  throw std::system_error(std::make_error_code(std::errc::connection_aborted),
                          "magpie: TLS: the stream was cut off");
}

// The buffer is there only while there is something to read: an idle connection needs none.
bool TlsConn::Session::receive() {
  conn_.wait_readable();
  auto buffer = std::make_unique_for_overwrite<std::byte[]>(kRecord);
  std::size_t count = conn_.read({buffer.get(), kRecord});
  if (count == 0) return false;
  std::lock_guard hold(lock_);
  if (BIO_write(input_, buffer.get(), static_cast<int>(count)) != static_cast<int>(count))
    throw std::bad_alloc();
  return true;
}

std::string TlsConn::Session::take_output() {
  std::lock_guard hold(lock_);
  std::string bytes(static_cast<std::size_t>(BIO_pending(output_)), '\0');
  if (!bytes.empty()) BIO_read(output_, bytes.data(), static_cast<int>(bytes.size()));
  return bytes;
}

// With the turn to write: records must leave in their order.
void TlsConn::Session::flush() {
  if (std::string bytes = take_output(); !bytes.empty()) conn_.write(bytes);
}

void TlsConn::Session::flush_in_turn() {
  {
    std::lock_guard hold(lock_);
    if (BIO_pending(output_) == 0) return;
  }
  std::lock_guard turn(write_turn_);
  flush();
}

void TlsConn::Session::handshake() {
  if (agreed_.load(std::memory_order_acquire)) return;
  std::lock_guard turn(handshake_turn_);
  OpensslError error;
  while (!agreed_.load(std::memory_order_acquire)) {
    Outcome outcome = call([](SSL* ssl) { return SSL_do_handshake(ssl); }, error);
    if (outcome == Outcome::failed) fail(error, "TLS handshake");
    flush_in_turn();
    if (outcome == Outcome::done) {
      agreed_.store(true, std::memory_order_release);
    } else if (!receive()) {
      cut_off();
    }
  }
}

std::size_t TlsConn::Session::read(std::span<std::byte> into) {
  if (into.empty()) return 0;
  handshake();
  std::lock_guard turn(read_turn_);
  OpensslError error;
  for (;;) {
    std::size_t count = 0;
    Outcome outcome =
        call([&](SSL* ssl) { return SSL_read_ex(ssl, into.data(), into.size(), &count); }, error);
    if (outcome == Outcome::done) return count;
    if (outcome == Outcome::ended) {
      refuse_if_closed();
      return 0;
    }
    if (outcome == Outcome::failed) fail(error, "TLS read");
    flush_in_turn();  // the peer may have asked for new keys
    if (!receive()) cut_off();
  }
}

void TlsConn::Session::wait_readable() {
  handshake();
  std::lock_guard turn(read_turn_);
  {
    std::lock_guard hold(lock_);
    if (SSL_pending(ssl_.get()) != 0 || BIO_pending(input_) != 0) return;
  }
  conn_.wait_readable();
}

namespace {

// Hands out a record's worth of bytes at a time; small parts are put together.
class Records {
 public:
  explicit Records(std::span<const std::span<const std::byte>> parts) : parts_(parts) {}

  // Empty: there are no more.
  std::span<const std::byte> next() {
    while (!parts_.empty() && parts_[0].size() == done_) {
      parts_ = parts_.subspan(1);
      done_ = 0;
    }
    if (parts_.empty()) return {};
    std::span<const std::byte> first = parts_[0].subspan(done_);
    if (parts_.size() == 1 || first.size() >= kRecord) {
      std::span<const std::byte> record = first.first(std::min(first.size(), kRecord));
      done_ += record.size();
      return record;
    }
    gathered_.clear();
    while (!parts_.empty() && gathered_.size() < kRecord) {
      std::span<const std::byte> part = parts_[0].subspan(done_);
      std::size_t count = std::min(part.size(), kRecord - gathered_.size());
      gathered_.insert(gathered_.end(), part.begin(),
                       part.begin() + static_cast<std::ptrdiff_t>(count));
      done_ += count;
      if (done_ < parts_[0].size()) break;
      parts_ = parts_.subspan(1);
      done_ = 0;
    }
    return gathered_;
  }

 private:
  std::span<const std::span<const std::byte>> parts_;
  std::size_t done_ = 0;  // of the first part
  std::vector<std::byte> gathered_;
};

}  // namespace

void TlsConn::Session::write_parts(std::span<const std::span<const std::byte>> parts) {
  handshake();
  std::lock_guard turn(write_turn_);
  Records records(parts);
  OpensslError error;
  for (std::span<const std::byte> left = records.next(); !left.empty(); left = records.next()) {
    while (!left.empty()) {
      std::size_t count = 0;
      Outcome outcome = call(
          [&](SSL* ssl) { return SSL_write_ex(ssl, left.data(), left.size(), &count); }, error);
      if (outcome != Outcome::done) error.raise("TLS write");
      left = left.subspan(count);
    }
    flush();
  }
}

void TlsConn::Session::shutdown_write() {
  handshake();
  std::lock_guard turn(write_turn_);
  OpensslError error;
  // 0: our farewell is under way, the peer's has not come; that is no error.
  Outcome outcome = call([](SSL* ssl) { return SSL_shutdown(ssl) < 0 ? -1 : 1; }, error);
  if (outcome == Outcome::failed) error.raise("TLS shutdown");
  flush();
  conn_.shutdown_write();
}

// Says farewell if that can be done at once: nobody else is at it, and the system takes the bytes.
void TlsConn::Session::close() noexcept {
  if (closed_.exchange(true)) return;
  if (agreed_.load(std::memory_order_acquire) && write_turn_.try_lock()) {
    try {
      OpensslError ignored;
      (void)call([](SSL* ssl) { return SSL_shutdown(ssl) < 0 ? -1 : 1; }, ignored);
      std::string bytes = take_output();
      (void)!send(conn_.native_handle(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    } catch (const std::bad_alloc&) {
    }
    write_turn_.unlock();
  }
  conn_.close();
}

}  // namespace magpie::net
