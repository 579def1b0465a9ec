// What ranks that agree tell each other (comm/recovery/agreement.hpp): one layout for all of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "comm/bootstrap/channel.hpp"
#include "comm/recovery/consensus.hpp"
#include "transports/keyed_hash.hpp"

namespace tacc {

enum class MeetingWord : std::uint32_t {
  visit = 1,  // "I take part, and follow you if you lead"
  leader,     // answer: `rank` leads
  prepare,    // leader: do you promise not to take part in lower ballots?
  promise,    // yes; and this is what I accepted
  outbid,     // no: I have promised `promised`
  accept,     // leader: accept this value
  accepted,
  decision,  // the value is decided
  known,     // I know the decision
  done,      // leader: all who could be told know it
  alive,     // leader: wait
};

/// "prepare" and so on; "" for none of them.
std::string_view nameOf(MeetingWord word) noexcept;

enum class AgreementPurpose : std::uint32_t {
  flags,   // taccCommAgree
  shrink,  // who goes on, and where they meet
  joined,  // whether all of them have come there
};

struct MeetingNote {
  MeetingWord word{};
  std::uint32_t instance = 0;  // which agreement of the communicator
  AgreementPurpose purpose{};
  std::uint32_t flags = 0;  // the sender's contribution; of done: 1 where all others of the base know, or are dead
  std::int32_t rank = -1;   // of visit: the sender's; of leader: who leads; of prepare: who is to bring an id
  Ballot ballot;            // of the leader's attempt; of visit and outbid: what the sender has promised
  Ballot accepted;          // of promise: in which the value was accepted
  std::uint64_t base = 0;   // digest of who may take part: equal on all
  double seconds = 0;       // of visit: for which the sender still waits
  std::optional<Decision> value;
  taccUniqueId id{};  // of promise, where one was asked for
};

/// For a rank that listens and does not answer, as one that is stopped: it lies at its door until it comes, when
/// the one that left it there may have ended, which must not look as if all others had died. Proven by itself, as
/// nobody is there to ask for a proof.
struct LeftBehind {
  std::uint32_t instance;  // of the agreement that was decided without it
  std::int32_t rank;       // to whom this is said
  Proof proof;
};
LeftBehind leftBehind(const Key& secret, std::uint32_t instance, int rank) noexcept;
bool isGenuine(const Key& secret, const LeftBehind& word, int rank) noexcept;

/// Who is in it, as 64 bits.
std::uint64_t digestOf(const std::vector<bool>& base) noexcept;

/// The message's payload.
Payload payloadOf(const MeetingNote& note);
/// Nothing for bytes that are no note among `ranks` ranks.
std::optional<MeetingNote> meetingNoteIn(const Message& message, std::size_t ranks);

}  // namespace tacc
