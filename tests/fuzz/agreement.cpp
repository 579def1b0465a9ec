// Two of three ranks know the secret and lie while the third agrees with them: it ends, with an Error or with a
// decision that is one, and who is no rank changes nothing.
//
// Input: the rank that agrees, for what, then steps: over which connection, what, and the rest of it.
#include "comm/recovery/agreement.hpp"

#include <poll.h>

#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "fuzz/memory_sockets.hpp"
#include "fuzz/target.hpp"

namespace tacc::fuzz {
namespace {

constexpr int ranks = 3;
constexpr std::size_t mostSteps = 48;
constexpr double patience = 20;   // the agreement's; interrupted long before
constexpr int waitsAtTheEnd = 4;  // in which the rank hears what the liars said last

/// One rank's end: its door, whom it called on, and who came.
struct Liar {
  Liar(int rank, const std::vector<SurvivorPlace>& places, const Secret& secret, Door& ownDoor)
      : members{rank, places, secret, false}, door(ownDoor) {
    door.receiveFor(members, visitors);
  }
  ~Liar() { door.stopReceiving(); }
  Liar(const Liar&) = delete;
  Liar& operator=(const Liar&) = delete;

  void listen() {
    std::vector<pollfd> sockets;
    door.addDescriptors(sockets);
    for (pollfd& one : sockets) one.revents = POLLIN;
    door.serve(sockets);
    for (const auto& one : visitors) hear(*one);
    if (call) hear(*call);
  }
  static void hear(MeetingLink& link) {
    link.progress();
    while (link.take()) continue;
  }
  /// Over the connection that this rank made, or one that was made to it; null: there is none.
  MeetingLink* link(int which, int to) {
    if (which == 0) {
      if (!call || call->isOver()) call.emplace(members, to);
      return &*call;
    }
    for (const auto& one : visitors)
      if (one->state() == MeetingLink::State::open) return one.get();
    return nullptr;
  }

  MeetingMembers members;
  Door& door;
  std::optional<MeetingLink> call;
  std::list<std::unique_ptr<MeetingLink>> visitors;
};

Ballot ballotIn(Input& input) {
  const int round = input.below(8);
  return {round < 7 ? static_cast<std::uint32_t>(round) : input.value<std::uint32_t>(),
          static_cast<std::int32_t>(input.below(ranks + 2)) - 1};
}

Decision decisionIn(Input& input) {
  Decision value{input.byte(), std::vector<bool>(ranks), {}};
  const int members = input.byte();
  for (std::size_t rank = 0; rank < ranks; ++rank) value.members[rank] = (members >> rank & 1) != 0;
  value.id.internal[0] = static_cast<char>(input.below(2));
  return value;
}

MeetingNote noteIn(Input& input, const AgreementRequest& request) {
  MeetingNote note;
  note.word = static_cast<MeetingWord>(1 + input.below(11));
  note.instance = static_cast<std::uint32_t>(input.below(4) == 3 ? 1 : 0);
  note.purpose = input.below(8) == 7 ? AgreementPurpose::joined : request.purpose;
  note.flags = input.byte();
  note.rank = input.below(ranks + 1) - 1;
  note.ballot = ballotIn(input);
  note.accepted = ballotIn(input);
  std::vector<bool> base(request.excluded.size());
  for (std::size_t rank = 0; rank < base.size(); ++rank) base[rank] = !request.excluded[rank];
  note.base = input.below(8) == 7 ? input.value<std::uint64_t>() : digestOf(base);
  note.seconds = input.below(4) == 3 ? 0 : patience;
  if (input.below(2) == 1) note.value = decisionIn(input);
  note.id.internal[0] = static_cast<char>(input.below(2));
  return note;
}

void step(Liar& liar, int to, Input& input, const AgreementRequest& request) {
  const int kind = input.below(16);
  MeetingLink* const link = liar.link(input.below(2), to);
  if (link == nullptr) return;
  if (kind == 15) return liar.call.reset();
  if (kind == 14) return link->sendFailure(Error(taccRemoteError, input.text(input.byte())));
  if (kind == 13) return link->leaveWord(static_cast<std::uint32_t>(input.below(2)));
  link->send(noteIn(input, request));
}

/// The liars' part: a step whenever the rank waits. Ends what they have not brought to an end.
class Lies {
 public:
  Lies(std::list<Liar>& liars, int to, Input input, const AgreementRequest& request, Interrupt& interrupt)
      : liars_(liars), to_(to), input_(input), request_(request), interrupt_(interrupt) {
    setWhileWaiting([this] { goOn(); });
  }
  ~Lies() { setWhileWaiting({}); }
  Lies(const Lies&) = delete;
  Lies& operator=(const Lies&) = delete;

 private:
  void goOn() {
    for (Liar& one : liars_) one.listen();
    if (steps_++ < mostSteps && !input_.isOver())
      step(input_.below(2) == 0 ? liars_.front() : liars_.back(), to_, input_, request_);
    else if (++waits_ == waitsAtTheEnd)
      interrupt_.raise();
  }

  std::list<Liar>& liars_;
  int to_;
  Input input_;
  const AgreementRequest& request_;
  Interrupt& interrupt_;
  std::size_t steps_ = 0;
  int waits_ = 0;
};

void run(Input input) {
  const int self = input.below(ranks);
  AgreementRequest request{input.below(2) == 0 ? AgreementPurpose::flags : AgreementPurpose::shrink, 7,
                           std::vector<bool>(ranks), patience};
  if (const int excluded = input.below(2 * ranks); excluded < ranks && excluded != self)
    request.excluded[static_cast<std::size_t>(excluded)] = true;
  Secret secret{};
  secret.fill(9);
  std::list<Door> doors;
  std::vector<SurvivorPlace> places;
  for (int rank = 0; rank < ranks; ++rank) places.push_back(doors.emplace_back(rank, nullptr).place());
  const MeetingMembers members{self, places, secret, false};
  std::list<Liar> liars;
  Door* own = nullptr;
  int rank = 0;
  for (Door& door : doors) {
    if (rank == self)
      own = &door;
    else
      liars.emplace_back(rank, places, secret, door);
    ++rank;
  }
  Interrupt interrupt(self);
  AgreementMemory memory;
  memory.dead.resize(ranks);
  const Lies lies(liars, self, input, request, interrupt);
  try {
    const MeetingObserver nobody;
    Agreement agreement(members, *own, interrupt, memory, request, nobody);
    const Decision decision = agreement.run();
    require(decision.members.size() == ranks, "a decision about others");
  } catch (const Error&) {
    // The liars kept it from one.
  }
}

/// A note, as noteIn() reads it.
Output& note(Output& output, int liar, int link, MeetingWord word, int rank, int round, int leader, int members) {
  output.byte(liar).byte(0).byte(link).byte(static_cast<int>(word) - 1).byte(0).byte(0).byte(7).byte(rank + 1);
  output.byte(round).byte(leader + 1).byte(0).byte(0).byte(0).byte(0);
  output.byte(members == 0 ? 0 : 1);
  if (members != 0) output.byte(7).byte(members).byte(0);
  return output.byte(0);
}

}  // namespace

std::vector<Bytes> seeds() {
  std::vector<Bytes> corpus;
  // Rank 0 leads, and the others follow it as they should.
  Output led;
  led.byte(0).byte(0).byte(5);
  for (const MeetingWord word : {MeetingWord::visit, MeetingWord::promise, MeetingWord::accepted, MeetingWord::known})
    for (const int liar : {0, 1}) note(led, liar, 0, word, liar + 1, 1, 0, 0);
  corpus.push_back(led.take());
  // Rank 2 follows rank 0.
  Output follows;
  follows.byte(2).byte(1).byte(5);
  note(follows, 0, 1, MeetingWord::leader, 0, 0, -1, 0);
  note(follows, 0, 1, MeetingWord::prepare, 0, 1, 0, 0);
  note(follows, 0, 1, MeetingWord::accept, -1, 1, 0, 7);
  note(follows, 0, 1, MeetingWord::decision, -1, 1, 0, 7);
  note(follows, 0, 1, MeetingWord::done, -1, 1, 0, 0);
  corpus.push_back(follows.take());
  // Another leader outbids, and two tell different decisions.
  Output split;
  split.byte(1).byte(0).byte(5);
  note(split, 0, 0, MeetingWord::prepare, -1, 3, 0, 0);
  note(split, 1, 0, MeetingWord::prepare, -1, 4, 2, 0);
  note(split, 0, 0, MeetingWord::accept, -1, 3, 0, 3);
  note(split, 0, 0, MeetingWord::decision, -1, 3, 0, 3);
  note(split, 1, 0, MeetingWord::decision, -1, 4, 2, 6);
  split.byte(0).byte(14).byte(0).byte(3).byte('b').byte('a').byte('d').byte(1).byte(13).byte(0).byte(0).byte(0).byte(
      15);
  corpus.push_back(split.take());
  return corpus;
}

}  // namespace tacc::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tacc::fuzz::run({data, size});
  return 0;
}
