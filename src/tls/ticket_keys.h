// ticket_keys.h: the keys that seal a server's tickets. A ticket is a session that the client
// keeps: a reader with the key can read what was said in it. So a key seals for a time, opens for
// as long again, and is then forgotten.
#pragma once

#include <openssl/ssl.h>

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>

namespace magpie::net {

class TicketKeys {
 public:
  struct Key {
    std::array<unsigned char, 16> name;
    std::array<unsigned char, 32> cipher, mac;
    std::int64_t since_ns;
  };

  explicit TicketKeys(std::int64_t lifetime_ns) : lifetime_ns_(lifetime_ns) {}
  ~TicketKeys();
  TicketKeys(const TicketKeys&) = delete;
  TicketKeys& operator=(const TicketKeys&) = delete;

  // The key to seal with; none: there is no randomness to be had.
  std::optional<Key> to_seal(std::int64_t now_ns);
  // The key of that name; none: it was never ours, or is forgotten.
  std::optional<Key> to_open(std::span<const unsigned char, 16> name, std::int64_t now_ns);
  bool is_old(const Key& key, std::int64_t now_ns) const {
    return now_ns - key.since_ns >= lifetime_ns_;
  }
  void forget();

  // OpenSSL's callback: sets the two up for one ticket.
  int set_up(unsigned char* name, unsigned char* iv, EVP_CIPHER_CTX* cipher, EVP_MAC_CTX* mac,
             int seals);

 private:
  void drop_old_locked(std::int64_t now_ns);

  const std::int64_t lifetime_ns_;
  // A plain mutex: it is locked in callbacks of OpenSSL's, in which the goroutine must not move to
  // another thread, and nothing of the runtime is called while it is held.
  std::mutex lock_;
  // guarded by lock_
  std::optional<Key> current_, previous_;
};

}  // namespace magpie::net
