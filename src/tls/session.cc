#include "tls/session.h"

#include <arpa/inet.h>
#include <openssl/buffer.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <new>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <magpie/context.h>

#include "tls/config.h"
#include "tls/records.h"

namespace magpie::net {
namespace {

// A peer may send this many messages about keys and tickets without a byte for the reader. Servers
// send a few tickets; nobody has a reason to change keys again before anything was said under them.
constexpr int kMostWords = 32;
// The most that reading may leave to be written, to a peer that does not read.
constexpr std::size_t kMostUnsent = 64 * 1024;
// A ClientHello has some hundred bytes, and a few thousand with a large ticket. OpenSSL sets this
// much aside in any case.
constexpr std::size_t kMostHello = 16 * 1024;
// What each buffer of a connection that waits may keep: the records of usual requests fit.
constexpr std::size_t kBufferKept = 2 * 1024;

bool is_number(const std::string& host) {
  unsigned char any[sizeof(in6_addr)];
  return inet_pton(AF_INET, host.c_str(), any) == 1 || inet_pton(AF_INET6, host.c_str(), any) == 1;
}

void wait_for_bytes(TcpConn& conn, const Context* context) {
  if (context == nullptr) {
    conn.wait_readable();
  } else {
    conn.wait_readable(*context);
  }
}

void give_buffer_back(BIO* buffer, std::size_t kept) {
  BUF_MEM* memory = nullptr;
  BIO_get_mem_ptr(buffer, &memory);
  if (memory->max <= kept || BIO_pending(buffer) != 0) return;
  if (BUF_MEM* none = BUF_MEM_new()) BIO_set_mem_buf(buffer, none, BIO_CLOSE);
}

// A negative result is an error number. Not inlined, as all that looks at errno: a compiler may
// keep its address over a call into the runtime, after which the thread may be another.
[[gnu::noinline]] ssize_t try_receive(int fd, std::span<std::byte> into) {
  ssize_t count = ::recv(fd, into.data(), into.size(), MSG_DONTWAIT);
  return count < 0 ? -errno : count;
}

}  // namespace

int keep_session(SSL* ssl, SSL_SESSION* session) {
  static_cast<TlsConn::Session*>(SSL_get_app_data(ssl))->remember(session);
  return 1;  // it is ours now
}

void TlsConn::Session::remember(SSL_SESSION* session) {
  client_->sessions.put(peer_, SavedSession(session));
}

TlsConn::Session::Session(TcpConn conn, const std::string& host,
                          std::shared_ptr<TlsClientConfig::State> config)
    : Session(std::move(conn)) {
  client_ = std::move(config);
  peer_ = host + ':' + std::to_string(conn_.remote_address().port());
  verifies_ = client_->verify;
  create(client_->context.get());
  SSL_set_connect_state(ssl_.get());
  name_peer(host);
  if (SavedSession saved = client_->sessions.take(peer_)) SSL_set_session(ssl_.get(), saved.get());
}

TlsConn::Session::Session(TcpConn conn, std::shared_ptr<TlsServerConfig::State> config)
    : Session(std::move(conn)) {
  server_ = std::move(config);
  identities_ = server_->identities();
  verifies_ = server_->options.client_auth != TlsClientAuth::none;
  create(identities_->first());
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
  SSL_set_msg_callback(ssl_.get(), note_message);
  SSL_set_msg_callback_arg(ssl_.get(), this);
}

// Only the certificate's alternative names count, as browsers have it: a common name may be
// anything.
void TlsConn::Session::name_peer(const std::string& host) {
  // OpenSSL takes a name that begins with a dot for all names below it, and reads a name up to its
  // first zero byte.
  if (host.starts_with('.') || host.find('\0') != host.npos)
    throw std::invalid_argument("magpie: TLS: \"" + host + "\" is no name of a machine");
  bool named;
  if (is_number(host)) {
    named = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl_.get()), host.c_str()) == 1;
  } else {
    SSL_set_hostflags(ssl_.get(),
                      X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    named = SSL_set1_host(ssl_.get(), host.c_str()) == 1 &&
            SSL_set_tlsext_host_name(ssl_.get(), host.c_str()) == 1;
  }
  if (!named) throw_openssl_error("the name " + host);
}

// OpenSSL calls it for each message, inside call(), so with the lock.
void TlsConn::Session::note_message(int is_written, int, int type, const void*, std::size_t, SSL*,
                                    void* session) {
  if (is_written == 0 && type == SSL3_RT_HANDSHAKE) ++static_cast<Session*>(session)->words_;
}

// ---- one call of OpenSSL's

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

bool TlsConn::Session::is_talking_idly_locked() const {
  return words_ > kMostWords || static_cast<std::size_t>(BIO_pending(output_)) > kMostUnsent;
}

// ---- errors

std::string TlsConn::Session::about(const char* what) const {
  std::string peer = peer_.empty() ? conn_.remote_address().to_string() : peer_;
  return "magpie: " + std::string(what) + (peer.empty() ? "" : " (" + peer + ")");
}

void TlsConn::Session::fail(const OpensslError& error, const char* what) {
  try_offer_output();  // the alert that tells the peer
  std::string text = about(what);
  long verdict = SSL_get_verify_result(ssl_.get());
  if (verifies_ && verdict != X509_V_OK)
    text += std::string(": the certificate: ") + X509_verify_cert_error_string(verdict);
  error.raise(text);
}

// Our own farewell may make the peer end the stream before close() has closed it: for its
// waiters that is close().
void TlsConn::Session::refuse_if_closed(const char* what) const {
  if (closed_.load())
    throw std::system_error(std::make_error_code(std::errc::operation_canceled), about(what));
}

// Bytes that TLS holds already are no reason to go on after the time is up, as bytes of a socket
// are none. A peer may put hundreds of new keys and a byte now and then into what we receive at
// once.
void TlsConn::Session::refuse_if_too_late(const Context* context) {
  std::error_code error = context == nullptr ? std::error_code() : context->err();
  if (!error) {
    std::lock_guard hold(deadline_lock_);
    if (read_deadline_ != TimePoint::max() && read_deadline_ <= TimePoint::clock::now())
      error = std::make_error_code(std::errc::timed_out);
  }
  if (error) throw std::system_error(error, about("TLS read"));
}

void TlsConn::Session::cut_off(const char* what) {
  refuse_if_closed(what);
  throw std::system_error(std::make_error_code(std::errc::connection_aborted),
                          about(what) + ": the stream was cut off");
}

// ---- bytes from and to the network

// In TLS 1.2 what comes after the first message may be encrypted, and look like anything.
void TlsConn::Session::refuse_long_hello_locked(std::span<const std::byte> bytes) {
  if (server_ == nullptr || agreed_.load(std::memory_order_acquire)) return;
  if (words_ > 0 && SSL_version(ssl_.get()) <= TLS1_2_VERSION) return;
  if (hello_.exceeds(kMostHello, bytes))
    throw std::system_error(std::make_error_code(std::errc::message_size),
                            about("TLS handshake") + ": the client begins with too long a message");
}

void TlsConn::Session::give_buffers_back(std::size_t kept) {
  std::lock_guard hold(lock_);
  give_buffer_back(input_, kept);
  give_buffer_back(output_, kept);
}

void TlsConn::Session::feed(std::span<const std::byte> bytes) {
  std::lock_guard hold(lock_);
  refuse_long_hello_locked(bytes);
  int size = static_cast<int>(bytes.size());
  if (BIO_write(input_, bytes.data(), size) != size) throw std::bad_alloc();
}

// The buffer is there only while there is something to read: an idle connection needs none.
bool TlsConn::Session::receive(const Context* context) {
  give_buffers_back(kBufferKept);
  wait_for_bytes(conn_, context);
  auto buffer = std::make_unique_for_overwrite<std::byte[]>(kRecord);
  std::size_t count = conn_.read({buffer.get(), kRecord});
  if (count == 0) return false;
  feed({buffer.get(), count});
  return true;
}

// With write_mutex_: records must leave in their order.
std::string TlsConn::Session::take_output() {
  std::string bytes = std::exchange(unsent_, {});
  std::lock_guard hold(lock_);
  auto more = static_cast<std::size_t>(BIO_pending(output_));
  if (more == 0) return bytes;
  bytes.resize(bytes.size() + more);
  BIO_read(output_, bytes.data() + bytes.size() - more, static_cast<int>(more));
  return bytes;
}

void TlsConn::Session::flush(const Context* context) {
  if (cut_)
    throw std::system_error(std::make_error_code(std::errc::broken_pipe),
                            about("TLS write") + ": an earlier write has failed");
  std::string bytes = take_output();
  if (bytes.empty()) return;
  cut_ = true;  // unless all of it is written
  if (context == nullptr) {
    conn_.write(bytes);
  } else {
    conn_.write(bytes, *context);
  }
  cut_ = false;
}

void TlsConn::Session::offer_output() noexcept {
  if (cut_ || unsent_.size() > kMostUnsent)
    return;  // more stays in the buffer, and is counted there
  try {
    unsent_ = take_output();
  } catch (const std::bad_alloc&) {
    cut_ = true;
    return;
  }
  if (unsent_.empty()) return;
  std::lock_guard hold(number_lock_);
  ssize_t taken =
      ::send(conn_.native_handle(), unsent_.data(), unsent_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (taken > 0) unsent_.erase(0, static_cast<std::size_t>(taken));
}

// If another goroutine has write_mutex_: it, or the next writer, takes these bytes along.
void TlsConn::Session::try_offer_output() noexcept {
  {
    std::lock_guard hold(lock_);
    if (BIO_pending(output_) == 0) return;
  }
  if (!write_mutex_.try_lock()) return;
  offer_output();
  write_mutex_.unlock();
}

// ---- deadlines

void TlsConn::Session::set_deadline(Side side, TimePoint deadline) noexcept {
  std::lock_guard hold(deadline_lock_);
  (side == Side::reader ? read_deadline_ : write_deadline_) = deadline;
  apply_deadlines_locked();
}

// handshake() sets agreed_ and calls this: it corrects a deadline that was moved before that.
void TlsConn::Session::apply_deadlines_locked() noexcept {
  TimePoint read = read_deadline_, write = write_deadline_;
  if (!agreed_.load(std::memory_order_acquire)) read = write = std::min(read, write);
  conn_.set_read_deadline(read);
  conn_.set_write_deadline(write);
}

// ---- what the user asks for

// A caller that waits while another one reads, writes or shakes hands leaves when its context is
// over.
std::unique_lock<Mutex> TlsConn::Session::lock(Mutex& mutex, const Context* context,
                                               const char* what) const {
  if (context == nullptr) return std::unique_lock(mutex);
  std::error_code error;
  if (!mutex.lock(*context, error)) throw std::system_error(error, about(what));
  return std::unique_lock(mutex, std::adopt_lock);
}

void TlsConn::Session::handshake(const Context* context) {
  if (agreed_.load(std::memory_order_acquire)) return;
  const auto agreeing = lock(handshake_mutex_, context, "TLS handshake");
  OpensslError error;
  while (!agreed_.load(std::memory_order_acquire)) {
    Outcome outcome = call([](SSL* ssl) { return SSL_do_handshake(ssl); }, error);
    if (outcome == Outcome::failed) fail(error, "TLS handshake");
    {
      const auto writing = lock(write_mutex_, context, "TLS handshake");
      flush(context);
    }
    if (outcome == Outcome::done) {
      {
        std::lock_guard hold(lock_);
        words_ = 0;
      }
      std::lock_guard hold(deadline_lock_);
      agreed_.store(true, std::memory_order_release);
      apply_deadlines_locked();
    } else if (!receive(context)) {
      cut_off("TLS handshake");
    }
  }
}

std::size_t TlsConn::Session::read(std::span<std::byte> into, const Context* context) {
  if (into.empty()) return 0;
  handshake(context);
  const auto reading = lock(read_mutex_, context, "TLS read");
  refuse_if_too_late(context);
  OpensslError error;
  for (;;) {
    std::size_t count = 0;
    bool talks_idly = false;
    Outcome outcome = call(
        [&](SSL* ssl) {
          int result = SSL_read_ex(ssl, into.data(), into.size(), &count);
          talks_idly = is_talking_idly_locked();
          if (count != 0) words_ = 0;
          return result;
        },
        error);
    if (talks_idly)
      throw std::system_error(std::make_error_code(std::errc::protocol_error),
                              about("TLS read") + ": the peer sends new keys without end");
    if (outcome == Outcome::done) return count;
    if (outcome == Outcome::ended) {
      refuse_if_closed("TLS read");
      return 0;
    }
    if (outcome == Outcome::failed) fail(error, "TLS read");
    try_offer_output();  // the peer may have asked for new keys
    if (!receive(context)) cut_off("TLS read");
  }
}

bool TlsConn::Session::check_idle() {
  if (!agreed_.load(std::memory_order_acquire)) return false;
  std::unique_lock reading(read_mutex_, std::try_to_lock);
  if (!reading) return false;
  OpensslError error;
  for (;;) {
    char byte;
    std::size_t count = 0;
    bool talks_idly = false;
    Outcome outcome = call(
        [&](SSL* ssl) {
          int result = SSL_peek_ex(ssl, &byte, 1, &count);
          talks_idly = is_talking_idly_locked();
          return result;
        },
        error);
    if (outcome != Outcome::wants_bytes || talks_idly) return false;
    try_offer_output();
    std::byte some[2048];
    ssize_t received;
    {
      std::lock_guard hold(number_lock_);
      received = try_receive(conn_.native_handle(), some);
    }
    if (received == -EINTR) continue;
    if (received == -EAGAIN) {
      std::lock_guard hold(lock_);  // half a record may be the beginning of anything
      return BIO_pending(input_) == 0 && SSL_has_pending(ssl_.get()) == 0;
    }
    if (received <= 0) return false;
    feed({some, static_cast<std::size_t>(received)});
  }
}

void TlsConn::Session::wait_readable(const Context* context) {
  handshake(context);
  const auto reading = lock(read_mutex_, context, "TLS wait");
  {
    std::lock_guard hold(lock_);
    if (SSL_pending(ssl_.get()) != 0 || BIO_pending(input_) != 0) return;
  }
  give_buffers_back(0);  // whoever waits without a buffer of its own is in for a long time
  wait_for_bytes(conn_, context);
}

void TlsConn::Session::write_parts(Parts parts, const Context* context, std::size_t& written) {
  handshake(context);
  const auto writing = lock(write_mutex_, context, "TLS write");
  Records records(parts);
  OpensslError error;
  for (std::span<const std::byte> left = records.next(); !left.empty(); left = records.next()) {
    const std::size_t size = left.size();
    while (!left.empty()) {
      std::size_t count = 0;
      Outcome outcome = call(
          [&](SSL* ssl) { return SSL_write_ex(ssl, left.data(), left.size(), &count); }, error);
      if (outcome != Outcome::done) error.raise(about("TLS write"));
      left = left.subspan(count);
    }
    flush(context);
    written += size;
  }
}

void TlsConn::Session::shutdown_write() {
  handshake();
  std::lock_guard writing(write_mutex_);
  OpensslError error;
  // 0: our farewell is under way, the peer's has not come; that is no error.
  Outcome outcome = call([](SSL* ssl) { return SSL_shutdown(ssl) < 0 ? -1 : 1; }, error);
  if (outcome == Outcome::failed) error.raise(about("TLS shutdown"));
  flush();
  conn_.shutdown_write();
}

// Says farewell if that can be done at once: nobody else is at it, and the system takes the bytes.
void TlsConn::Session::close() noexcept {
  if (closed_.exchange(true)) return;
  if (agreed_.load(std::memory_order_acquire) && write_mutex_.try_lock()) {
    OpensslError ignored;
    (void)call([](SSL* ssl) { return SSL_shutdown(ssl) < 0 ? -1 : 1; }, ignored);
    offer_output();
    write_mutex_.unlock();
  }
  std::lock_guard hold(number_lock_);
  conn_.close();
}

}  // namespace magpie::net
