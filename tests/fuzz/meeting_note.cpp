// What survivors tell each other: a payload is a note as a whole, or none, and says the same when it is packed again.
//
// Input: how many ranks there are, then the payload.
#include "comm/bootstrap/meeting_note.hpp"

#include <algorithm>
#include <cmath>

#include "fuzz/target.hpp"

namespace tacc::fuzz {
namespace {

void read(Input input) {
  const std::size_t ranks = 1U + input.byte();
  const auto rest = input.restAsText();
  const auto* bytes = reinterpret_cast<const std::byte*>(rest.data());
  const Message message{MessageKind::meeting, {bytes, bytes + rest.size()}, {}};
  const auto note = meetingNoteIn(message, ranks);
  if (!note) return;
  require(!nameOf(note->word).empty(), "a word without a name");
  require(note->rank >= -1 && note->rank < static_cast<int>(ranks), "a rank that is none");
  require(std::isfinite(note->seconds), "no time");
  require(!note->value || note->value->members.size() == ranks, "members of another number");
  const auto again = meetingNoteIn({MessageKind::meeting, *payloadOf(*note), {}}, ranks);
  require(again && again->ballot == note->ballot && again->value == note->value && again->base == note->base,
          "a note that is packed again differs");
}

}  // namespace

std::vector<Bytes> seeds() {
  MeetingNote note{.word = MeetingWord::promise,
                   .instance = 3,
                   .purpose = AgreementPurpose::shrink,
                   .flags = 5,
                   .rank = 1,
                   .ballot = {2, 1},
                   .accepted = {1, 0},
                   .base = 77,
                   .seconds = 1.5,
                   .value = Decision{1, {true, false, true, true, false, true, true, true, true}, {}},
                   .id = {}};
  const auto with = payloadOf(note);
  note.word = MeetingWord::alive;
  note.value.reset();
  const auto without = payloadOf(note);
  return {Output().byte(8).range(*with).take(), Output().byte(8).range(*without).take(), Output().byte(0).take()};
}

}  // namespace tacc::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tacc::fuzz::read({data, size});
  return 0;
}
