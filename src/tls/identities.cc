#include "tls/identities.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <utility>

#include <magpie/detail/deadline.h>

#include "tls/config.h"
#include "tls/openssl_error.h"
#include "tls/peer.h"
#include "tls/session.h"

namespace magpie::net {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  }
  return result;
}

TlsConn::Session& session_of(SSL* ssl) {
  return *static_cast<TlsConn::Session*>(SSL_get_app_data(ssl));
}

// OpenSSL's callbacks.

int choose_identity(SSL* ssl, int*, void*) {
  const char* name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
  if (name == nullptr) return SSL_TLSEXT_ERR_NOACK;
  if (SSL_CTX* found = session_of(ssl).identities()->find(name)) SSL_set_SSL_CTX(ssl, found);
  return SSL_TLSEXT_ERR_OK;
}

int choose_protocol(SSL* ssl, const unsigned char** chosen, unsigned char* size,
                    const unsigned char* offered, unsigned offered_size, void*) {
  const std::vector<unsigned char>& ours = session_of(ssl).server()->alpn;
  unsigned char* found = nullptr;
  int result = SSL_select_next_proto(&found, size, ours.data(), static_cast<unsigned>(ours.size()),
                                     offered, offered_size);
  *chosen = found;
  return result == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

int set_up_ticket(SSL* ssl, unsigned char* name, unsigned char* iv, EVP_CIPHER_CTX* cipher,
                  EVP_MAC_CTX* mac, int seals) {
  return session_of(ssl).identities()->ticket_keys().set_up(name, iv, cipher, mac, seals);
}

OpensslContext context_for(const TlsIdentity& identity, TlsServerConfig::State& config) {
  const TlsServerConfig::Options& options = config.options;
  OpensslContext made =
      new_context(TLS_server_method(), options.min_version, options.ciphers, options.ciphersuites);
  SSL_CTX* context = made.get();
  use_identity(context, identity);
  if (options.client_auth != TlsClientAuth::none) {
    int mode = SSL_VERIFY_PEER;
    if (options.client_auth == TlsClientAuth::require) mode |= SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
    SSL_CTX_set_verify(context, mode, nullptr);
    trust_file(context, options.client_ca_file);
    tell_whom_we_trust(context, options.client_ca_file);
  }
  static constexpr unsigned char kOurs[] = "magpie";
  SSL_CTX_set_session_id_context(context, kOurs, sizeof kOurs - 1);
  SSL_CTX_set_tlsext_servername_callback(context, choose_identity);
  SSL_CTX_set_tlsext_ticket_key_evp_cb(context, set_up_ticket);
  if (!config.alpn.empty()) SSL_CTX_set_alpn_select_cb(context, choose_protocol, nullptr);
  return made;
}

}  // namespace

std::vector<FileStamp> stamps_of(const TlsServerConfig::Options& options) {
  std::vector<FileStamp> stamps;
  for (const std::string* path :
       {&options.certificate_file, &options.key_file, &options.client_ca_file})
    stamps.push_back(FileStamp::of(*path));
  for (const TlsIdentity& identity : options.more_identities) {
    stamps.push_back(FileStamp::of(identity.certificate_file));
    stamps.push_back(FileStamp::of(identity.key_file));
  }
  return stamps;
}

std::shared_ptr<const Identities> Identities::read(TlsServerConfig::State& config) {
  auto identities = std::make_shared<Identities>();
  identities->stamps_ = stamps_of(config.options);
  identities->ticket_keys_ =
      config.options.client_auth == TlsClientAuth::none
          ? config.lasting_ticket_keys
          : std::make_shared<TicketKeys>(detail::whole_ns(config.options.ticket_key_lifetime));
  identities->add(context_for({config.options.certificate_file, config.options.key_file}, config));
  for (const TlsIdentity& identity : config.options.more_identities)
    identities->add(context_for(identity, config));
  return identities;
}

// The first with a name has it.
void Identities::add(OpensslContext context) {
  X509* own = SSL_CTX_get0_certificate(context.get());
  TlsCertificate names = describe(own);
  if (names.dns_names.empty() && !names.common_name.empty())
    names.dns_names.push_back(names.common_name);
  for (const std::string& name : names.dns_names) by_name_.emplace(lower(name), context.get());
  contexts_.push_back(std::move(context));
}

SSL_CTX* Identities::find(std::string_view name) const {
  std::string wanted = lower(name);
  if (wanted.ends_with('.')) wanted.pop_back();
  auto found = by_name_.find(wanted);
  std::size_t dot = wanted.find('.');
  if (found == by_name_.end() && dot != std::string::npos)
    found = by_name_.find("*" + wanted.substr(dot));
  return found == by_name_.end() ? nullptr : found->second;
}

}  // namespace magpie::net
