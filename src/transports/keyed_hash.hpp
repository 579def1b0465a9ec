// Keyed hashes (BLAKE2b), with which processes that share a key prove so to each other and derive further keys from it.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string_view>
#include <type_traits>

namespace tacc {

using Key = std::array<unsigned char, 32>;
using Nonce = std::array<unsigned char, 32>;
using Proof = std::array<unsigned char, 32>;

/// What a hash is good for. Always of 16 characters, so that no purpose followed by data can read as another one.
class Purpose {
 public:
  consteval Purpose(const char (&text)[17]) : text_(text, 16) {}
  std::string_view text() const noexcept { return text_; }

 private:
  std::string_view text_;
};

/// The bytes of a plain value, for keyedHash().
template <class Value>
requires std::is_trivially_copyable_v<Value> std::span<const std::byte> bytesOf(const Value& value)
noexcept { return std::as_bytes(std::span(&value, 1)); }

/// Hash of the purpose and the parts one after the other; those who use one purpose give parts of the same lengths.
Proof keyedHash(const Key& key, Purpose purpose, std::initializer_list<std::span<const std::byte>> parts) noexcept;

/// In constant time.
bool areEqual(const Proof& a, const Proof& b) noexcept;

/// Fresh random bytes.
Nonce makeNonce();

/// The keys of one end of a connection, one for each direction.
struct LinkKeys {
  Key sending;
  Key receiving;
};

}  // namespace tacc
