#include "comm/bootstrap/handshake.hpp"

#include <unistd.h>

#include <algorithm>

#include "comm/hosts.hpp"
#include "core/error.hpp"
#include "transports/shm/liveness.hpp"

namespace tacc {
namespace {

Proof prove(const Secret& secret, Purpose role, const Challenge& challenge, const Hello& hello,
            const Introduction& who) {
  return keyedHash(secret, role, {bytesOf(challenge.nonce), bytesOf(hello.nonce), bytesOf(who)});
}

constexpr Purpose joinerRole = "tacc: I join    ";
constexpr Purpose rootRole = "tacc: I am rank0";

/// Everything that either end has proven is part of the keys.
LinkKeys keysOf(const Secret& secret, const Challenge& challenge, const Hello& hello, const Introduction& host) {
  const auto parts = {bytesOf(challenge.nonce), bytesOf(hello.nonce), bytesOf(hello.who), bytesOf(host)};
  return {keyedHash(secret, "tacc: to joiner ", parts), keyedHash(secret, "tacc: to host   ", parts)};
}

}  // namespace

Introduction introduceSelf(int ranks, int rank, bool encrypts) {
  Introduction who{};
  who.libraryVersion = TACC_VERSION_CODE;
  who.ranks = static_cast<std::uint32_t>(ranks);
  who.rank = static_cast<std::uint32_t>(rank);
  who.pid = static_cast<std::uint32_t>(::getpid());
  who.processSpace = processSpaceHash();
  who.encrypts = encrypts ? 1 : 0;
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

Hello answerChallenge(const Secret& secret, const Challenge& challenge, const Introduction& who) {
  Hello hello{makeNonce(), who, {}};
  hello.proof = prove(secret, joinerRole, challenge, hello, who);
  return hello;
}

bool isGenuine(const Secret& secret, const Challenge& challenge, const Hello& hello) {
  return areEqual(hello.proof, prove(secret, joinerRole, challenge, hello, hello.who));
}

Welcome answerHello(const Secret& secret, const Challenge& challenge, const Hello& hello, const Introduction& who) {
  return {who, prove(secret, rootRole, challenge, hello, who)};
}

bool isGenuine(const Secret& secret, const Challenge& challenge, const Hello& hello, const Welcome& welcome) {
  return areEqual(welcome.proof, prove(secret, rootRole, challenge, hello, welcome.who));
}

void trustJoiner(Channel& channel, const Secret& secret, const Challenge& challenge, const Hello& hello,
                 const Introduction& self) {
  channel.trust();
  if (self.encrypts != 0 && hello.who.encrypts != 0) channel.seal(keysOf(secret, challenge, hello, self));
}

void trustHost(Channel& channel, const Secret& secret, const Challenge& challenge, const Hello& hello,
               const Welcome& welcome) {
  channel.trust();
  if (hello.who.encrypts == 0 || welcome.who.encrypts == 0) return;
  const LinkKeys ofHost = keysOf(secret, challenge, hello, welcome.who);
  channel.seal({ofHost.receiving, ofHost.sending});
}

}  // namespace tacc
