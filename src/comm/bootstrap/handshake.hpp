// How two processes prove to each other that they know the secret of a unique id, without showing it.
//
//   host   -> joiner   Challenge: a fresh nonce
//   joiner -> host     Hello: a fresh nonce, who it is, and a keyed hash of both nonces and of who it is
//   host   -> joiner   Welcome: who the host is, and another keyed hash of both nonces and of that
//
// The host is rank 0 or a gateway.
//
// The key is the secret. Fresh nonces from both ends make a recorded conversation worthless; the two hashes begin with
// different words, so that one end's proof cannot be sent back to it as the other's. Where both ends encrypt
// (TACC_ENCRYPTION), what follows goes under keys that are derived from the same.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "comm/bootstrap/channel.hpp"
#include "comm/bootstrap/unique_id.hpp"
#include "transports/keyed_hash.hpp"

namespace tacc {

using Secret = Key;
static_assert(sizeof(Secret) == secretBytes);

/// Who speaks. The layout stays for ever, so that different versions of the library can name each other.
struct Introduction {
  std::uint32_t libraryVersion;  // TACC_VERSION_CODE
  std::uint32_t ranks;
  std::uint32_t rank;
  std::uint32_t pid;
  std::uint64_t processSpace;  // processSpaceHash(): where it is the same, `pid` means something
  std::uint32_t port;          // of TCP, where it admits others behind it; 0: nowhere
  std::uint16_t stays;         // 1: it is not to be sent on to another rank
  std::uint16_t encrypts;      // 1: TACC_ENCRYPTION=on
  std::array<char, 64> host;   // name, cut to end in a zero
};

struct Challenge {
  Nonce nonce;
};
struct Hello {
  Nonce nonce;
  Introduction who;
  Proof proof;
};
struct Welcome {
  Introduction who;
  Proof proof;
};

static_assert(sizeof(Introduction) == 16 + 8 + 8 + 64);

/// This process, as that rank.
Introduction introduceSelf(int ranks, int rank, bool encrypts = false);

/// "process 4711", or for one on another host "process 4711 on host tacc4". Safe for whatever bytes came.
std::string describePlace(const Introduction& who, bool elsewhere);
/// The same with what the process does now ("running", "stopped (SIGSTOP)", "gone"), where this host can tell.
std::string describeState(const Introduction& who, bool elsewhere);

/// The joiner's answer to a challenge.
Hello answerChallenge(const Secret& secret, const Challenge& challenge, const Introduction& who);
/// The host's check of it. Constant time.
bool isGenuine(const Secret& secret, const Challenge& challenge, const Hello& hello);
/// The host's proof.
Welcome answerHello(const Secret& secret, const Challenge& challenge, const Hello& hello, const Introduction& who);
/// The joiner's check of it. Constant time.
bool isGenuine(const Secret& secret, const Challenge& challenge, const Hello& hello, const Welcome& welcome);

/// After the welcome, which is the last message in the clear: from here on the host's channel is trusted, and encrypted
/// if both ends want that. One that only one end wants stays in the clear, and no rank gets beyond init:
/// BootstrapRoot::examine().
void trustJoiner(Channel& channel, const Secret& secret, const Challenge& challenge, const Hello& hello,
                 const Introduction& self);
/// The same for the joiner's channel.
void trustHost(Channel& channel, const Secret& secret, const Challenge& challenge, const Hello& hello,
               const Welcome& welcome);

}  // namespace tacc
