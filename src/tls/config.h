// config.h: what is kept for many connections.
#pragma once

#include <openssl/ssl.h>

#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include <magpie/mutex.h>
#include <magpie/net/tls.h>

#include "tls/identities.h"
#include "tls/ticket_keys.h"

namespace magpie::net {

// Throws std::system_error for ciphers that OpenSSL does not know.
OpensslContext new_context(const SSL_METHOD* method, TlsVersion least, const std::string& ciphers,
                           const std::string& ciphersuites);

// What all copies of a config share. Throws std::invalid_argument if it is empty.
template <class Config>
const std::shared_ptr<typename Config::State>& state_of(const Config& config) {
  if (config.state() == nullptr)
    throw std::invalid_argument(
        "magpie: TLS: the config is empty: it was moved from, or making it "
        "has failed");
  return config.state();
}

struct FreeSession {
  void operator()(SSL_SESSION* session) const { SSL_SESSION_free(session); }
};
using SavedSession = std::unique_ptr<SSL_SESSION, FreeSession>;

// The last session with each host. A plain mutex: it is locked by a callback of OpenSSL's, in which
// the goroutine must not move to another thread, and nothing of the runtime is called while it is
// held.
class SessionCache {
 public:
  void put(const std::string& host, SavedSession session);
  SavedSession take(
      const std::string& host);  // null: none. A session of TLS 1.3 is good for one use

 private:
  static constexpr std::size_t kMost = 1000;
  std::mutex lock_;
  std::map<std::string, SavedSession> sessions_;
};

struct TlsClientConfig::State {
  OpensslContext context;
  bool verify = true;
  SessionCache sessions;
};

struct TlsServerConfig::State {
  explicit State(const Options& its_options);

  // For a connection that begins now. Looks at the files if that is due.
  std::shared_ptr<const Identities> identities();
  // Throws std::system_error, and nothing has changed.
  void reload();

  // fixed after construction
  const Options options;
  const std::vector<unsigned char> alpn;  // as on the wire

  // Of all generations if no client is vouched for; else each has its own, see Identities.
  const std::shared_ptr<TicketKeys> lasting_ticket_keys;

 private:
  void read_if_changed(const std::shared_ptr<const Identities>& old);
  void read();

  Mutex lock_;
  // guarded by lock_
  std::shared_ptr<const Identities> current_;
  // Readings of the files, in the order in which they began: a slow one does not replace what a
  // later one found.
  std::uint64_t last_reading_ = 0;
  std::uint64_t reading_of_current_ = 0;
  std::int64_t next_look_ns_;
  std::vector<FileStamp> refused_;  // files that made no sense, and were told of
};

}  // namespace magpie::net
