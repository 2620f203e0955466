// identities.h: the certificates of a server, as its files were when they were last read. Never
// changes: a reload makes new ones, and connections that have begun keep theirs.
#pragma once

#include <openssl/ssl.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <magpie/net/tls.h>

#include "tls/pem.h"
#include "tls/ticket_keys.h"

namespace magpie::net {

struct FreeContext {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
using OpensslContext = std::unique_ptr<SSL_CTX, FreeContext>;

class Identities {
 public:
  // Reads all files. Throws std::system_error.
  static std::shared_ptr<const Identities> read(TlsServerConfig::State& config);

  SSL_CTX* first() const { return contexts_.front().get(); }
  // For the name that a client asks for; null: none.
  SSL_CTX* find(std::string_view name) const;
  // Of all files, taken just before they were read.
  const std::vector<FileStamp>& stamps() const { return stamps_; }
  // A ticket vouches for its client, and a reload may change which clients are vouched for. So
  // where clients show certificates, keys are of one generation: a connection that began before a
  // reload gets a ticket that nobody opens after it.
  TicketKeys& ticket_keys() const { return *ticket_keys_; }

 private:
  void add(OpensslContext context);

  std::vector<OpensslContext> contexts_;
  std::map<std::string, SSL_CTX*, std::less<>> by_name_;  // small letters; "*.example.org"
  std::vector<FileStamp> stamps_;
  std::shared_ptr<TicketKeys> ticket_keys_;  // it has a lock of its own
};

// Those of the files that the options name, in a fixed order.
std::vector<FileStamp> stamps_of(const TlsServerConfig::Options& options);

}  // namespace magpie::net
