// hello_length.h: how long a client says that its first message is.
//
// OpenSSL makes room for a whole ClientHello, and clears it, as soon as its first bytes announce
// the length: 131,396 bytes at most, for nine that were sent. No client needs a tenth of that. So
// the session looks at the announcement before OpenSSL does.
//
// A handshake message has a type, three bytes of length, and as many bytes. Records carry its bytes
// in pieces of any size. In TLS 1.3 the messages that a client does not encrypt are its
// ClientHellos: the first, and a second one if the server has asked for it. So records are looked
// at until the handshake is done. In TLS 1.2 they are looked at until the first message is there.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace magpie::net {

class HelloLength {
 public:
  // Takes the next bytes of the stream. True: one of the messages is longer than that.
  bool exceeds(std::size_t most, std::span<const std::byte> bytes) noexcept {
    while (!bytes.empty()) {
      if (record_left_ == 0) {
        if (!take_record_header(bytes)) return false;
        continue;
      }
      const std::size_t size = std::min(record_left_, bytes.size());
      if (is_handshake_ && message_exceeds(most, bytes.first(size))) return true;
      record_left_ -= size;
      bytes = bytes.subspan(size);
    }
    return false;
  }

 private:
  static constexpr std::size_t kRecordHeader = 5;   // type, version, length
  static constexpr std::size_t kMessageHeader = 4;  // type, length
  static constexpr unsigned kHandshake = 22;

  // False: it is not whole.
  bool take_record_header(std::span<const std::byte>& bytes) noexcept {
    const auto next = std::to_integer<unsigned>(bytes.front());
    bytes = bytes.subspan(1);
    if (header_taken_ == 0) is_handshake_ = next == kHandshake;
    length_ = length_ << 8 | next;
    if (++header_taken_ < kRecordHeader) return !bytes.empty();
    record_left_ = length_ & 0xffff;
    header_taken_ = 0;
    return true;
  }

  bool message_exceeds(std::size_t most, std::span<const std::byte> bytes) noexcept {
    while (!bytes.empty()) {
      if (message_left_ > 0) {
        const std::size_t size = std::min(message_left_, bytes.size());
        message_left_ -= size;
        bytes = bytes.subspan(size);
        continue;
      }
      message_ = message_ << 8 | std::to_integer<std::uint32_t>(bytes.front());
      bytes = bytes.subspan(1);
      if (++message_taken_ < kMessageHeader) continue;
      message_taken_ = 0;
      message_left_ = message_ & 0xffffff;
      if (message_left_ > most) return true;
    }
    return false;
  }

  bool is_handshake_ = false;      // the record's type
  std::size_t header_taken_ = 0;   // of the record's header
  std::uint64_t length_ = 0;       // its last bytes
  std::size_t record_left_ = 0;    // of its contents
  std::size_t message_taken_ = 0;  // of the message's header
  std::uint32_t message_ = 0;      // its last bytes
  std::size_t message_left_ = 0;   // of its contents
};

}  // namespace magpie::net
