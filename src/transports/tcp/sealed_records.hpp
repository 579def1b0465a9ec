// An encrypted connection: each direction is a stream of bytes, cut into records.
//
// A record is the length of its text (4 bytes), the text encrypted, and a tag of 16 bytes that proves text and length
// (ChaCha20-Poly1305 of RFC 8439). A direction has its own key, made for this connection alone, and the number of
// the record is the cipher's nonce: so a record that was changed, left out, repeated, moved or taken from another
// connection or direction does not open. Nothing opens after the first that does not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "transports/keyed_hash.hpp"

namespace tacc {

/// The key of a direction and the number of its next record.
class RecordCipher {
 public:
  static constexpr std::size_t headBytes = 4;
  static constexpr std::size_t tagBytes = 16;
  static constexpr std::size_t longestText = std::size_t{64} << 10;

  explicit RecordCipher(const Key& key) noexcept : key_(key) {}
  ~RecordCipher();
  RecordCipher(const RecordCipher&) = delete;
  RecordCipher& operator=(const RecordCipher&) = delete;

  /// Encrypts the text in place, which lies behind room for the head and in front of room for the tag.
  void seal(std::span<std::byte> record) noexcept;
  /// Decrypts in place. False: this is not the record that the other end has sealed now.
  bool open(std::span<std::byte> record) noexcept;
  /// The record that was sealed last will never be sent: another may have its number.
  void takeBack() noexcept { --number_; }
  /// How many bytes the record has that begins with these (at least headBytes); nothing when it cannot be one.
  static std::optional<std::size_t> lengthOf(std::span<const std::byte> begin) noexcept;

 private:
  Key key_;
  std::uint64_t number_ = 0;
};

/// What is to be sent: one record at a time.
class SealedOutput {
 public:
  explicit SealedOutput(const Key& key) noexcept : cipher_(key) {}

  /// Where the text of the next record goes, of `bytes` bytes (1 to longestText). Nothing may be pending.
  std::span<std::byte> compose(std::size_t bytes);
  /// The text is complete.
  void seal() noexcept { cipher_.seal(record_); }
  /// What of the record has not been sent.
  std::span<const std::byte> pending() const noexcept { return std::span(record_).subspan(sent_); }
  void advance(std::size_t bytes) noexcept;
  /// Forgets the record, of which no byte has been sent.
  void takeBack() noexcept;

 private:
  RecordCipher cipher_;
  std::vector<std::byte> record_;
  std::size_t sent_ = 0;
};

/// What has come, in pieces of any size.
class SealedInput {
 public:
  explicit SealedInput(const Key& key) noexcept : cipher_(key) {}

  /// Room for `bytes` more. What next() returned is gone.
  std::span<std::byte> room(std::size_t bytes);
  /// That many bytes lie in the room now.
  void arrived(std::size_t bytes) noexcept { end_ += bytes; }
  /// The text of the next record, if it is whole.
  std::optional<std::span<const std::byte>> next() noexcept;
  /// Something came that the other end has not sealed, or not in this place: next() gives nothing more.
  bool isForged() const noexcept { return isForged_; }

 private:
  RecordCipher cipher_;
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0, end_ = 0;
  bool isForged_ = false;
};

/// Both directions, at one end.
struct SealedLink {
  explicit SealedLink(const LinkKeys& keys) noexcept : out(keys.sending), in(keys.receiving) {}
  SealedOutput out;
  SealedInput in;
};

}  // namespace tacc
