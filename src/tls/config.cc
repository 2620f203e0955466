#include "tls/config.h"

#include <openssl/err.h>

#include <stdexcept>
#include <utility>

#include "tls/openssl_error.h"
#include "tls/session.h"

namespace magpie::net {
namespace {

Context new_context(const SSL_METHOD* method) {
  ERR_clear_error();
  Context context(SSL_CTX_new(method));
  if (context == nullptr) throw_openssl_error("SSL_CTX_new");
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  return context;
}

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

int choose_protocol(SSL*, const unsigned char** chosen, unsigned char* size,
                    const unsigned char* offered, unsigned offered_size, void* argument) {
  auto& ours = static_cast<TlsServerConfig::State*>(argument)->alpn;
  unsigned char* found = nullptr;
  int result = SSL_select_next_proto(&found, size, ours.data(), static_cast<unsigned>(ours.size()),
                                     offered, offered_size);
  *chosen = found;
  return result == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

}  // namespace

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

TlsClientConfig::TlsClientConfig(const Options& options) : state_(std::make_shared<State>()) {
  state_->context = new_context(TLS_client_method());
  SSL_CTX* context = state_->context.get();
  state_->verify = options.verify;
  SSL_CTX_set_verify(context, options.verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  bool trusts = options.ca_file.empty()
                    ? SSL_CTX_set_default_verify_paths(context) == 1
                    : SSL_CTX_load_verify_file(context, options.ca_file.c_str()) == 1;
  if (!trusts) throw_openssl_error("the certificates to trust, " + options.ca_file);
  std::vector<unsigned char> alpn = on_the_wire(options.alpn);
  if (!alpn.empty() &&
      SSL_CTX_set_alpn_protos(context, alpn.data(), static_cast<unsigned>(alpn.size())) != 0)
    throw_openssl_error("the ALPN protocols");
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
  SSL_CTX_sess_set_new_cb(context, keep_session);
}

TlsServerConfig::TlsServerConfig(const Options& options) : state_(std::make_shared<State>()) {
  state_->context = new_context(TLS_server_method());
  SSL_CTX* context = state_->context.get();
  if (SSL_CTX_use_certificate_chain_file(context, options.certificate_file.c_str()) != 1)
    throw_openssl_error("the certificate in " + options.certificate_file);
  if (SSL_CTX_use_PrivateKey_file(context, options.key_file.c_str(), SSL_FILETYPE_PEM) != 1)
    throw_openssl_error("the private key in " + options.key_file);
  if (SSL_CTX_check_private_key(context) != 1)
    throw_openssl_error("the key in " + options.key_file + " is not that of the certificate in " +
                        options.certificate_file);
  static constexpr unsigned char kOurs[] = "magpie";
  SSL_CTX_set_session_id_context(context, kOurs, sizeof kOurs - 1);
  state_->alpn = on_the_wire(options.alpn);
  if (!state_->alpn.empty()) SSL_CTX_set_alpn_select_cb(context, choose_protocol, state_.get());
}

}  // namespace magpie::net
