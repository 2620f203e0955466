#include "http/address_table.h"

#include <netinet/in.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <random>
#include <stdexcept>

#include <magpie/detail/deadline.h>

namespace magpie::http {

namespace {

std::uint64_t mixed(std::uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccd;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53;
  return x ^ (x >> 33);
}

std::uint64_t random_seed() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

constexpr double kLongestNs = 1e17;  // three years: sums of times stay countable

std::int64_t cost_of(double requests_per_second) {
  if (requests_per_second == 0) return 0;
  if (!(requests_per_second > 0) || !std::isfinite(requests_per_second))
    throw std::invalid_argument("magpie: limit_per_address(): a rate of requests is positive");
  return static_cast<std::int64_t>(std::clamp(1e9 / requests_per_second, 1.0, kLongestNs));
}

}  // namespace

std::optional<AddressTable::Key> AddressTable::key_of(const net::Address& address) noexcept {
  constexpr std::uint64_t kIpv4 = 0xffff'0000'0000;  // as in "::ffff:1.2.3.4", where the bytes end
  Key key;
  if (address.family() == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, address.data(), sizeof v4);
    key.low = kIpv4 | ntohl(v4.sin_addr.s_addr);
    return key;
  }
  if (address.family() != AF_INET6) return std::nullopt;
  sockaddr_in6 v6{};
  std::memcpy(&v6, address.data(), sizeof v6);
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    std::uint32_t v4;
    std::memcpy(&v4, v6.sin6_addr.s6_addr + 12, sizeof v4);
    key.low = kIpv4 | ntohl(v4);
    return key;
  }
  std::memcpy(&key.high, v6.sin6_addr.s6_addr, sizeof key.high);
  return key;
}

std::size_t AddressTable::Hash::operator()(const Key& key) const noexcept {
  return static_cast<std::size_t>(mixed(mixed(key.high ^ seed) + key.low));
}

AddressTable::AddressTable(std::size_t connections, double requests_per_second, std::size_t burst)
    : connections_(connections),
      cost_ns_(cost_of(requests_per_second)),
      bucket_ns_(static_cast<std::int64_t>(
          std::min(static_cast<double>(cost_ns_) *
                       std::max(burst != 0 ? static_cast<double>(burst) : requests_per_second, 1.0),
                   kLongestNs))),
      entries_(0, Hash{random_seed()}) {}

std::size_t AddressTable::size() const {
  std::lock_guard hold(mutex_);
  return entries_.size();
}

void AddressTable::forget_idle_locked(std::int64_t now_ns) {
  std::erase_if(entries_, [now_ns](const auto& one) {
    return one.second.connections == 0 && one.second.full_at_ns <= now_ns;
  });
  sweep_at_ = std::clamp(entries_.size() * 2, kFirstSweep, kMost);
  if (entries_.size() >= kMost) full_since_ns_ = now_ns;
}

AddressTable::Entry* AddressTable::find_or_add_locked(const Key& key, std::int64_t now_ns) {
  if (auto known = entries_.find(key); known != entries_.end()) return &known->second;
  constexpr std::int64_t kSweepEvery = 100'000'000;
  if (entries_.size() >= sweep_at_ &&
      (full_since_ns_ == 0 || now_ns - full_since_ns_ >= kSweepEvery))
    forget_idle_locked(now_ns);
  if (entries_.size() >= kMost) return nullptr;
  return &entries_[key];
}

bool AddressTable::add_connection(const Key& key) {
  std::lock_guard hold(mutex_);
  Entry* entry = find_or_add_locked(key, detail::steady_now_ns());
  if (entry == nullptr) return true;
  if (connections_ != 0 && entry->connections >= connections_) return false;
  ++entry->connections;
  return true;
}

void AddressTable::remove_connection(const Key& key) noexcept {
  std::lock_guard hold(mutex_);
  auto known = entries_.find(key);
  // None: the table was full when it came.
  if (known != entries_.end() && known->second.connections > 0) --known->second.connections;
}

std::int64_t AddressTable::add_request(const Key& key, std::int64_t now_ns) {
  std::lock_guard hold(mutex_);
  Entry* entry = find_or_add_locked(key, now_ns);
  if (entry == nullptr) return 0;
  const std::int64_t full_at = std::max(entry->full_at_ns, now_ns) + cost_ns_;
  const std::int64_t too_early = full_at - now_ns - bucket_ns_;
  if (too_early > 0) return too_early;
  entry->full_at_ns = full_at;
  return 0;
}

std::optional<AddressTable::Key> key_of_peer(const net::Stream& stream) noexcept {
  try {
    return AddressTable::key_of(stream.remote_address());
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

std::shared_ptr<CountedConnection> CountedConnection::make(std::shared_ptr<AddressTable> table,
                                                           const AddressTable::Key& key) {
  auto counted = std::make_shared<CountedConnection>(std::move(table), key);
  if (counted->table_->counts_connections()) {
    if (!counted->table_->add_connection(key)) return nullptr;
    counted->counted_ = true;
  }
  return counted;
}

}  // namespace magpie::http
