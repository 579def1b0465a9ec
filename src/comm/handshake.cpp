#include "comm/handshake.hpp"

#include <sodium.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "base/error.hpp"
#include "comm/host.hpp"
#include "transports/liveness.hpp"

namespace tacc {
namespace {

Proof prove(const Secret& secret, std::string_view role, const Challenge& challenge, const Hello& hello,
            const Introduction& who) {
  crypto_generichash_state state;
  ::crypto_generichash_init(&state, secret.data(), secret.size(), sizeof(Proof));
  const auto add = [&](const void* data, std::size_t bytes) {
    ::crypto_generichash_update(&state, static_cast<const unsigned char*>(data), bytes);
  };
  add(role.data(), role.size());
  add(challenge.nonce.data(), challenge.nonce.size());
  add(hello.nonce.data(), hello.nonce.size());
  add(&who, sizeof who);
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

Introduction introduceSelf(int ranks, int rank) {
  Introduction who{};
  who.libraryVersion = TACC_VERSION_CODE;
  who.ranks = static_cast<std::uint32_t>(ranks);
  who.rank = static_cast<std::uint32_t>(rank);
  who.pid = static_cast<std::uint32_t>(::getpid());
  who.processSpace = processSpaceHash();
  const std::string name = hostName().substr(0, who.host.size() - 1);
  std::ranges::copy(name, who.host.begin());
  return who;
}

std::string describePlace(const Introduction& who, bool elsewhere) {
  std::string name(who.host.begin(), std::ranges::find(who.host, '\0'));
  // It may be shown on a terminal.
  std::ranges::replace_if(
      name, [](char c) { return c < '!' || c > '~'; }, '?');
  return elsewhere ? fmt::format("process {} on host {}", who.pid, name) : fmt::format("process {}", who.pid);
}

std::string describeState(const Introduction& who, bool elsewhere) {
  const bool known = who.processSpace != 0 && who.processSpace == processSpaceHash();
  const std::string place = describePlace(who, elsewhere);
  return known ? fmt::format("{}, {}", place, describeProcess(static_cast<pid_t>(who.pid))) : place;
}

Nonce makeNonce() {
  Nonce nonce;
  ::randombytes_buf(nonce.data(), nonce.size());
  return nonce;
}

Hello answerChallenge(const Secret& secret, const Challenge& challenge, const Introduction& who) {
  Hello hello{makeNonce(), who, {}};
  hello.proof = prove(secret, joinerRole, challenge, hello, who);
  return hello;
}

bool isGenuine(const Secret& secret, const Challenge& challenge, const Hello& hello) {
  return equal(hello.proof, prove(secret, joinerRole, challenge, hello, hello.who));
}

Welcome answerHello(const Secret& secret, const Challenge& challenge, const Hello& hello, const Introduction& who) {
  return {who, prove(secret, hubRole, challenge, hello, who)};
}

bool isGenuine(const Secret& secret, const Challenge& challenge, const Hello& hello, const Welcome& welcome) {
  return equal(welcome.proof, prove(secret, hubRole, challenge, hello, welcome.who));
}

}  // namespace tacc
