#include "tls/ticket_keys.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <algorithm>

#include <magpie/detail/deadline.h>

namespace magpie::net {
namespace {

void wipe(std::optional<TicketKeys::Key>& key) {
  if (key) OPENSSL_cleanse(&*key, sizeof *key);
  key.reset();
}

}  // namespace

TicketKeys::~TicketKeys() { forget(); }

void TicketKeys::forget() {
  std::lock_guard hold(lock_);
  wipe(current_);
  wipe(previous_);
}

void TicketKeys::drop_old_locked(std::int64_t now_ns) {
  if (current_ && is_old(*current_, now_ns)) {
    wipe(previous_);
    previous_ = current_;
    wipe(current_);
  }
  if (previous_ && now_ns - previous_->since_ns - lifetime_ns_ >= lifetime_ns_) wipe(previous_);
}

std::optional<TicketKeys::Key> TicketKeys::to_seal(std::int64_t now_ns) {
  std::lock_guard hold(lock_);
  drop_old_locked(now_ns);
  if (!current_) {
    Key fresh;
    fresh.since_ns = now_ns;
    if (RAND_bytes(fresh.name.data(), static_cast<int>(fresh.name.size())) != 1 ||
        RAND_priv_bytes(fresh.cipher.data(), static_cast<int>(fresh.cipher.size())) != 1 ||
        RAND_priv_bytes(fresh.mac.data(), static_cast<int>(fresh.mac.size())) != 1)
      return std::nullopt;
    current_ = fresh;
  }
  return current_;
}

std::optional<TicketKeys::Key> TicketKeys::to_open(std::span<const unsigned char, 16> name,
                                                   std::int64_t now_ns) {
  std::lock_guard hold(lock_);
  drop_old_locked(now_ns);
  for (const std::optional<Key>& key : {current_, previous_}) {
    if (key && std::equal(name.begin(), name.end(), key->name.begin())) return key;
  }
  return std::nullopt;
}

int TicketKeys::set_up(unsigned char* name, unsigned char* iv, EVP_CIPHER_CTX* cipher,
                       EVP_MAC_CTX* mac, int seals) {
  constexpr int kFailed = -1, kUnknown = 0, kGood = 1, kGoodAndRenew = 2;
  const std::int64_t now = detail::steady_now_ns();
  std::optional<Key> key =
      seals != 0 ? to_seal(now) : to_open(std::span<const unsigned char, 16>(name, 16), now);
  if (!key) return seals != 0 ? kFailed : kUnknown;
  if (seals != 0) {
    std::copy(key->name.begin(), key->name.end(), name);
    if (RAND_bytes(iv, EVP_CIPHER_get_iv_length(EVP_aes_256_cbc())) != 1) return kFailed;
  }
  char digest[] = "SHA256";
  OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, key->mac.data(), key->mac.size()),
      OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
      OSSL_PARAM_construct_end()};
  bool ready =
      EVP_CipherInit_ex(cipher, EVP_aes_256_cbc(), nullptr, key->cipher.data(), iv, seals) == 1 &&
      EVP_MAC_CTX_set_params(mac, parameters) == 1;
  // Clients use a ticket once (RFC 8446, C.4), so each gets a new one.
  int result = !ready ? kFailed : seals != 0 ? kGood : kGoodAndRenew;
  wipe(key);
  return result;
}

}  // namespace magpie::net
