// config.h: what OpenSSL keeps for many connections.
#pragma once

#include <openssl/ssl.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <magpie/net/tls.h>

namespace magpie::net {

struct FreeContext {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
using Context = std::unique_ptr<SSL_CTX, FreeContext>;

struct FreeSession {
  void operator()(SSL_SESSION* session) const { SSL_SESSION_free(session); }
};
using SavedSession = std::unique_ptr<SSL_SESSION, FreeSession>;

// The last session with each host. A plain mutex: it is locked by a callback of OpenSSL's, in which the goroutine must not move to
// another thread, and nothing of the runtime is called while it is held.
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
  Context context;
  bool verify = true;
  SessionCache sessions;
};

struct TlsServerConfig::State {
  Context context;
  std::vector<unsigned char> alpn;  // as on the wire
};

}  // namespace magpie::net
