#include "comm/bootstrap/meeting_note.hpp"

#include <cmath>
#include <cstring>

namespace tacc {
namespace {

/// As it travels; the members follow, a bit each, where there is a value.
struct WireNote {
  std::uint32_t word, instance, purpose, flags;
  std::int32_t rank;
  std::uint32_t hasValue, valueFlags, ranks;
  Ballot ballot, accepted;
  std::uint64_t base;
  double seconds;
  taccUniqueId id, valueId;
};
static_assert(std::is_trivially_copyable_v<WireNote>);

constexpr auto lastWord = MeetingWord::alive;
constexpr auto lastPurpose = AgreementPurpose::joined;

}  // namespace

std::string_view nameOf(MeetingWord word) noexcept {
  constexpr std::string_view names[] = {"",       "visit",    "leader",   "prepare", "promise", "outbid",
                                        "accept", "accepted", "decision", "known",   "done",    "alive"};
  const auto index = static_cast<std::size_t>(word);
  return index < std::size(names) ? names[index] : std::string_view();
}

LeftBehind leftBehind(const Key& secret, std::uint32_t instance, int rank) noexcept {
  LeftBehind word{instance, rank, {}};
  word.proof = keyedHash(secret, "tacc: left behin", {bytesOf(word.instance), bytesOf(word.rank)});
  return word;
}

bool isGenuine(const Key& secret, const LeftBehind& word, int rank) noexcept {
  return word.rank == rank && areEqual(word.proof, leftBehind(secret, word.instance, rank).proof);
}

std::uint64_t digestOf(const std::vector<bool>& base) noexcept {
  std::uint64_t hash = 0xCBF2'9CE4'8422'2325ULL;  // FNV-1a
  for (const bool isIn : base) hash = (hash ^ (isIn ? 1 : 2)) * 0x100'0000'01B3ULL;
  return hash;
}

Payload payloadOf(const MeetingNote& note) {
  WireNote wire{};
  wire.word = static_cast<std::uint32_t>(note.word);
  wire.instance = note.instance;
  wire.purpose = static_cast<std::uint32_t>(note.purpose);
  wire.flags = note.flags;
  wire.rank = note.rank;
  wire.ballot = note.ballot;
  wire.accepted = note.accepted;
  wire.base = note.base;
  wire.seconds = note.seconds;
  wire.id = note.id;
  std::vector<std::byte> bytes(sizeof wire);
  if (note.value) {
    const std::vector<bool>& members = note.value->members;
    wire.hasValue = 1;
    wire.valueFlags = note.value->flags;
    wire.valueId = note.value->id;
    wire.ranks = static_cast<std::uint32_t>(members.size());
    bytes.resize(sizeof wire + (members.size() + 7) / 8);
    for (std::size_t rank = 0; rank < members.size(); ++rank)
      if (members[rank]) bytes[sizeof wire + rank / 8] |= std::byte{1} << (rank % 8);
  }
  std::memcpy(bytes.data(), &wire, sizeof wire);
  return makePayload(std::move(bytes));
}

std::optional<MeetingNote> meetingNoteIn(const Message& message, std::size_t ranks) {
  WireNote wire;
  if (message.kind != MessageKind::meeting || message.payload.size() < sizeof wire) return std::nullopt;
  std::memcpy(&wire, message.payload.data(), sizeof wire);
  const std::size_t bits = message.payload.size() - sizeof wire;
  if (wire.word == 0 || wire.word > static_cast<std::uint32_t>(lastWord) ||
      wire.purpose > static_cast<std::uint32_t>(lastPurpose) || wire.hasValue > 1 || !std::isfinite(wire.seconds) ||
      wire.rank < -1 || wire.rank >= static_cast<std::int64_t>(ranks))
    return std::nullopt;
  if (wire.hasValue == 0 ? bits != 0 : wire.ranks != ranks || bits != (ranks + 7) / 8) return std::nullopt;
  MeetingNote note{.word = static_cast<MeetingWord>(wire.word),
                   .instance = wire.instance,
                   .purpose = static_cast<AgreementPurpose>(wire.purpose),
                   .flags = wire.flags,
                   .rank = wire.rank,
                   .ballot = wire.ballot,
                   .accepted = wire.accepted,
                   .base = wire.base,
                   .seconds = wire.seconds,
                   .value = {},
                   .id = wire.id};
  if (wire.hasValue == 0) return note;
  note.value.emplace(Decision{wire.valueFlags, std::vector<bool>(ranks), wire.valueId});
  for (std::size_t rank = 0; rank < ranks; ++rank)
    note.value->members[rank] = (message.payload[sizeof wire + rank / 8] >> (rank % 8) & std::byte{1}) != std::byte{0};
  return note;
}

}  // namespace tacc
