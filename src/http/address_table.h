// address_table.h: how much each remote address does: connections that are open, and requests
// lately.
//
// An address of IPv6 counts by its first 64 bits: that is what one customer has. Addresses that do
// nothing are forgotten when the table has grown. It has a limit; beyond that addresses that are
// not in it are let through: other limits hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>

#include <magpie/mutex.h>
#include <magpie/net/address.h>
#include <magpie/net/stream.h>

namespace magpie::http {

class AddressTable {
 public:
  struct Key {
    std::uint64_t high = 0, low = 0;
    bool operator==(const Key&) const = default;
  };
  // None: the address of no machine, such as a Unix socket's.
  static std::optional<Key> key_of(const net::Address& address) noexcept;

  // Limits of 0 are none.
  AddressTable(std::size_t connections, double requests_per_second, std::size_t burst);

  // One more connection. False: that would be too many. Throws std::bad_alloc.
  [[nodiscard]] bool add_connection(const Key& key);
  void remove_connection(const Key& key) noexcept;

  // One more request. Returns how long to wait if that is too many now; 0: it is not. Throws
  // std::bad_alloc.
  [[nodiscard]] std::int64_t add_request(const Key& key, std::int64_t now_ns);

  bool counts_connections() const { return connections_ != 0; }
  bool counts_requests() const { return cost_ns_ != 0; }
  std::size_t size() const;

 private:
  struct Entry {
    std::size_t connections = 0;
    std::int64_t full_at_ns = 0;  // when its bucket of tokens is full again
  };
  struct Hash {
    std::uint64_t seed;  // nobody outside can choose addresses that collide
    std::size_t operator()(const Key& key) const noexcept;
  };
  using Entries = std::unordered_map<Key, Entry, Hash>;

  Entry* find_or_add_locked(const Key& key, std::int64_t now_ns);
  void forget_idle_locked(std::int64_t now_ns);

  static constexpr std::size_t kFirstSweep = 1024;
  static constexpr std::size_t kMost = 65'536;

  const std::size_t connections_;
  const std::int64_t cost_ns_;    // of a request
  const std::int64_t bucket_ns_;  // how much may be spent ahead of time

  mutable Mutex mutex_;
  // guarded by mutex_
  Entries entries_;
  std::size_t sweep_at_ = kFirstSweep;  // entries
  std::int64_t full_since_ns_ = 0;      // the last sweep that found no room
};

// None too: the peer has gone.
std::optional<AddressTable::Key> key_of_peer(const net::Stream& stream) noexcept;

// A connection that is counted, until this ends.
class CountedConnection {
 public:
  // Null: there are too many of that address. Throws std::bad_alloc.
  static std::shared_ptr<CountedConnection> make(std::shared_ptr<AddressTable> table,
                                                 const AddressTable::Key& key);
  CountedConnection(std::shared_ptr<AddressTable> table, const AddressTable::Key& key)
      : table_(std::move(table)), key_(key) {}
  ~CountedConnection() {
    if (counted_) table_->remove_connection(key_);
  }
  CountedConnection(const CountedConnection&) = delete;
  CountedConnection& operator=(const CountedConnection&) = delete;

  const AddressTable::Key& key() const { return key_; }

 private:
  const std::shared_ptr<AddressTable> table_;
  const AddressTable::Key key_;
  bool counted_ = false;
};

}  // namespace magpie::http
