#include "transports/keyed_hash.hpp"

#include <sodium.h>

namespace tacc {

Proof keyedHash(const Key& key, Purpose purpose, std::initializer_list<std::span<const std::byte>> parts) noexcept {
  crypto_generichash_state state;
  ::crypto_generichash_init(&state, key.data(), key.size(), sizeof(Proof));
  const auto add = [&state](const void* data, std::size_t bytes) {
    ::crypto_generichash_update(&state, static_cast<const unsigned char*>(data), bytes);
  };
  add(purpose.text().data(), purpose.text().size());
  for (const std::span<const std::byte> part : parts) add(part.data(), part.size());
  Proof hash;
  ::crypto_generichash_final(&state, hash.data(), hash.size());
  return hash;
}

bool areEqual(const Proof& a, const Proof& b) noexcept { return ::sodium_memcmp(a.data(), b.data(), a.size()) == 0; }

Nonce makeNonce() {
  Nonce nonce;
  ::randombytes_buf(nonce.data(), nonce.size());
  return nonce;
}

}  // namespace tacc
