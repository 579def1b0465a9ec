#include "comm/handshake.hpp"

#include <sodium.h>

#include <string_view>

namespace tacc {
namespace {

Proof prove(const Secret& secret, std::string_view role, const Challenge& challenge, const Hello& hello) {
  crypto_generichash_state state;
  ::crypto_generichash_init(&state, secret.data(), secret.size(), sizeof(Proof));
  const auto add = [&](const void* data, std::size_t bytes) {
    ::crypto_generichash_update(&state, static_cast<const unsigned char*>(data), bytes);
  };
  add(role.data(), role.size());
  add(challenge.nonce.data(), challenge.nonce.size());
  add(hello.nonce.data(), hello.nonce.size());
  add(&hello.who, sizeof hello.who);
  Proof proof;
  ::crypto_generichash_final(&state, proof.data(), proof.size());
  return proof;
}

// Of equal length, so that no role followed by a nonce can read as the other role followed by another nonce.
constexpr std::string_view joinerRole = "tacc: I join    ";
constexpr std::string_view hubRole = "tacc: I am rank0";
static_assert(joinerRole.size() == hubRole.size());

bool equal(const Proof& a, const Proof& b) { return ::sodium_memcmp(a.data(), b.data(), a.size()) == 0; }

}  // namespace

Nonce makeNonce() {
  Nonce nonce;
  ::randombytes_buf(nonce.data(), nonce.size());
  return nonce;
}

Hello answerChallenge(const Secret& secret, const Challenge& challenge, const Introduction& who) {
  Hello hello{makeNonce(), who, {}};
  hello.proof = prove(secret, joinerRole, challenge, hello);
  return hello;
}

bool isGenuine(const Secret& secret, const Challenge& challenge, const Hello& hello) {
  return equal(hello.proof, prove(secret, joinerRole, challenge, hello));
}

Welcome answerHello(const Secret& secret, const Challenge& challenge, const Hello& hello) {
  return {prove(secret, hubRole, challenge, hello)};
}

bool isGenuine(const Secret& secret, const Challenge& challenge, const Hello& hello, const Welcome& welcome) {
  return equal(welcome.proof, prove(secret, hubRole, challenge, hello));
}

}  // namespace tacc
