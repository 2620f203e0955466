#include "tls/config.h"

#include <openssl/err.h>

#include <cstdio>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <magpie/detail/deadline.h>

#include "net/error_code.h"
#include "tls/openssl_error.h"
#include "tls/pem.h"
#include "tls/session.h"

namespace magpie::net {
namespace {

// An attacker that learns the certificate's key later cannot read what was said.
constexpr const char* kForwardSecret = "ECDHE+AESGCM:ECDHE+CHACHA20:ECDHE+AES:!aNULL:!eNULL";

std::vector<unsigned char> on_the_wire(const std::vector<std::string>& protocols) {
  std::vector<unsigned char> wire;
  for (const std::string& protocol : protocols) {
    if (protocol.empty() || protocol.size() > 255)
      throw std::invalid_argument("magpie: an ALPN protocol has 1 to 255 bytes");
    wire.push_back(static_cast<unsigned char>(protocol.size()));
    wire.insert(wire.end(), protocol.begin(), protocol.end());
  }
  return wire;
}

}  // namespace

OpensslContext new_context(const SSL_METHOD* method, TlsVersion least, const std::string& ciphers,
                           const std::string& ciphersuites) {
  ERR_clear_error();
  OpensslContext made(SSL_CTX_new(method));
  if (made == nullptr) throw_openssl_error("SSL_CTX_new");
  SSL_CTX* context = made.get();
  SSL_CTX_set_min_proto_version(context,
                                least == TlsVersion::tls_1_3 ? TLS1_3_VERSION : TLS1_2_VERSION);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  if (SSL_CTX_set_cipher_list(context, ciphers.empty() ? kForwardSecret : ciphers.c_str()) != 1)
    throw_openssl_error("the ciphers \"" + ciphers + "\"");
  if (!ciphersuites.empty() && SSL_CTX_set_ciphersuites(context, ciphersuites.c_str()) != 1)
    throw_openssl_error("the ciphersuites \"" + ciphersuites + "\"");
  return made;
}

// ---- clients

void SessionCache::put(const std::string& host, SavedSession session) {
  std::lock_guard hold(lock_);
  if (sessions_.size() >= kMost && !sessions_.contains(host)) sessions_.erase(sessions_.begin());
  sessions_[host] = std::move(session);
}

SavedSession SessionCache::take(const std::string& host) {
  std::lock_guard hold(lock_);
  auto found = sessions_.find(host);
  if (found == sessions_.end()) return nullptr;
  SavedSession session = std::move(found->second);
  sessions_.erase(found);
  return session;
}

TlsClientConfig::TlsClientConfig(const Options& options, std::error_code& error) {
  with_error_code(error, [&] { *this = TlsClientConfig(options); });
}

TlsClientConfig::TlsClientConfig(const Options& options) : state_(std::make_shared<State>()) {
  state_->context =
      new_context(TLS_client_method(), options.min_version, options.ciphers, options.ciphersuites);
  SSL_CTX* context = state_->context.get();
  state_->verify = options.verify;
  SSL_CTX_set_verify(context, options.verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  if (!options.ca_file.empty()) {
    trust_file(context, options.ca_file);
  } else if (SSL_CTX_set_default_verify_paths(context) != 1) {
    throw_openssl_error("the certificates that the system trusts");
  }
  if (!options.identity.certificate_file.empty()) use_identity(context, options.identity);
  std::vector<unsigned char> alpn = on_the_wire(options.alpn);
  if (!alpn.empty() &&
      SSL_CTX_set_alpn_protos(context, alpn.data(), static_cast<unsigned>(alpn.size())) != 0)
    throw_openssl_error("the ALPN protocols");
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
  SSL_CTX_sess_set_new_cb(context, keep_session);
}

// ---- servers

TlsServerConfig::State::State(const Options& its_options)
    : options(its_options),
      alpn(on_the_wire(its_options.alpn)),
      lasting_ticket_keys(
          std::make_shared<TicketKeys>(detail::whole_ns(its_options.ticket_key_lifetime))),
      next_look_ns_(detail::deadline_after(its_options.check_files_every)) {
  if (options.client_auth != TlsClientAuth::none && options.client_ca_file.empty())
    throw std::invalid_argument("magpie: client_auth needs a client_ca_file");
  current_ = Identities::read(*this);
}

std::shared_ptr<const Identities> TlsServerConfig::State::identities() {
  std::shared_ptr<const Identities> current;
  {
    std::lock_guard hold(lock_);
    current = current_;
    if (options.check_files_every.count() == 0 || detail::steady_now_ns() < next_look_ns_)
      return current;
    next_look_ns_ = detail::deadline_after(options.check_files_every);
  }
  read_if_changed(current);
  std::lock_guard hold(lock_);
  return current_;
}

// Files that are replaced one after the other do not fit for a moment: they are looked at again at
// the next look.
void TlsServerConfig::State::read_if_changed(const std::shared_ptr<const Identities>& old) {
  std::vector<FileStamp> now = stamps_of(options);
  if (now == old->stamps()) return;
  try {
    read();
  } catch (const std::exception& error) {
    {
      std::lock_guard hold(lock_);
      if (refused_ == now) return;
      refused_ = now;
    }
    if (options.on_reload_error) {
      options.on_reload_error(error);
    } else {
      std::fprintf(stderr, "magpie: changed certificates are not used: %s\n", error.what());
    }
  }
}

void TlsServerConfig::State::read() {
  std::uint64_t reading;
  {
    std::lock_guard hold(lock_);
    reading = ++last_reading_;
  }
  std::shared_ptr<const Identities> fresh = Identities::read(*this);
  std::lock_guard hold(lock_);
  if (reading < reading_of_current_) return;
  reading_of_current_ = reading;
  current_.swap(fresh);  // the old ones may go after the lock
  refused_.clear();
}

void TlsServerConfig::State::reload() { read(); }

TlsServerConfig::TlsServerConfig(const Options& options)
    : state_(std::make_shared<State>(options)) {}

TlsServerConfig::TlsServerConfig(const Options& options, std::error_code& error) {
  with_error_code(error, [&] { *this = TlsServerConfig(options); });
}

void TlsServerConfig::reload() const { state_of(*this)->reload(); }
void TlsServerConfig::reload(std::error_code& error) const {
  with_error_code(error, [&] { reload(); });
}

}  // namespace magpie::net
