// What a rank does that leads an agreement.
#include <algorithm>
#include <utility>

#include "comm/bootstrap/unique_id.hpp"
#include "comm/recovery/agreement.hpp"
#include "transports/spare_descriptors.hpp"

namespace tacc {
namespace {

constexpr double headStart = 0.02;        // for the others to come by themselves before they are called on
constexpr double unreachableSeconds = 3;  // then the others go on without it, if they may
constexpr double answerSeconds = 1;       // for each step of a ballot: ranks in it do nothing else
constexpr double informSeconds = 1;
constexpr double wordSeconds = 0.1;  // for the hosts of those that are left behind to answer a call
constexpr double aliveSeconds = 0.3;
constexpr std::size_t mostCalls = 256;  // at a time
constexpr int shown = 8;                // ranks in a message
/// Of the time for which ranks wait, what is kept for the ballot, at least and at most.
constexpr double keptShare = 0.1, leastKept = 0.1, mostKept = 1;

}  // namespace

void Agreement::beginToLead() {
  role_ = Role::leading;
  leader_ = rank_;
  target_ = -1;
  leadingSince_ = Clock::now();
  announceLeader(rank_);
  acceptor_.hasDecided() ? inform() : giveUpBallot();
}

void Agreement::lead() {
  keepAlive();
  const double age = secondsSince(phaseSince_);
  switch (phase_) {
    case Phase::collecting:
      return collect();
    case Phase::preparing:
      return countPromises();
    case Phase::accepting:
      if (age > patient(answerSeconds)) giveUpBallot();
      return;
    case Phase::informing:
      break;
  }
  if (!std::exchange(areLeftBehindCalled_, true)) callLeftBehind();
  callMissing();
  const Decision& value = *acceptor_.value();
  bool areMembersSettled = true, isBaseSettled = true;
  for (int rank = 0; rank < ranks(); ++rank) {
    const auto index = static_cast<std::size_t>(rank);
    if (!isBase(rank) || rank == rank_ || knows_[index] || isDead(rank)) continue;
    isBaseSettled = false;
    if (value.members[index]) areMembersSettled = false;
  }
  if (!areMembersSettled && age <= patient(informSeconds) && !(helpUntil_ && Clock::now() > *helpUntil_)) return;
  if (isWordOnTheWay()) return;
  MeetingNote note = noteOf(MeetingWord::done);
  note.flags = isBaseSettled ? 1 : 0;
  memory_.isWanted = memory_.isWanted || !isBaseSettled;
  for (auto& [rank, follower] : followers_) send(*follower.link, note);
  for (auto& [rank, link] : calls_)
    if (!value.members[static_cast<std::size_t>(rank)]) link->leaveWord(memory_.instance);
  isFinished_ = true;
}

/// Calls anew on those that are left behind, where they were called on already and may be in the middle of a proof, or
/// were not to be called on for a while: only a new call can leave word, which they find when they go on.
void Agreement::callLeftBehind() {
  const Decision& value = *acceptor_.value();
  for (int rank = 0; rank < ranks(); ++rank) {
    if (!isBase(rank) || rank == rank_ || isDead(rank) || value.members[static_cast<std::size_t>(rank)]) continue;
    if (followers_.contains(rank)) continue;  // came in the meantime, and is told over the link that it came by
    if (const auto found = calls_.find(rank); found != calls_.end() && found->second->canLeaveWord()) continue;
    if (calls_.size() < mostCalls || calls_.contains(rank)) call(rank);
  }
}

bool Agreement::isWordOnTheWay() const {
  return std::ranges::any_of(calls_, [this](const auto& one) {
    return !acceptor_.value()->members[static_cast<std::size_t>(one.first)] &&
           one.second->state() == MeetingLink::State::connecting && one.second->age() < wordSeconds;
  });
}

std::vector<bool> Agreement::present() const {
  std::vector<bool> here(members_.places.size());
  here[static_cast<std::size_t>(rank_)] = true;
  for (const auto& [rank, follower] : followers_) here[static_cast<std::size_t>(rank)] = isBase(rank);
  return here;
}

bool Agreement::isSettled(int rank) const {
  if (rank == rank_ || isDead(rank) || followers_.contains(rank)) return true;
  const auto found = absences_.find(rank);
  return found != absences_.end() && found->second.unreachableSince &&
         secondsSince(*found->second.unreachableSince) > unreachableSeconds;
}

void Agreement::collect() {
  callMissing();
  bool areAllSettled = true;
  for (int rank = 0; rank < ranks() && areAllSettled; ++rank)
    if (isBase(rank)) areAllSettled = isSettled(rank);
  if ((areAllSettled || isTimeShort()) && quorum_.suffices(present(), memory_.dead)) startBallot();
}

double Agreement::keptSeconds() const noexcept { return std::clamp(request_.seconds * keptShare, leastKept, mostKept); }

bool Agreement::isTimeShort() const {
  Time end = deadline_;
  for (const auto& [rank, follower] : followers_) end = std::min(end, follower.deadline);
  return secondsSince(end) > -keptSeconds();
}

/// Of ranks that have not come, those that have ended refuse a call; one that takes part is told who leads; and the
/// call to one that does not answer ends when that rank does.
void Agreement::callMissing() {
  if (secondsSince(leadingSince_) < patient(headStart)) return;
  for (int rank = 0; rank < ranks() && calls_.size() < mostCalls; ++rank) {
    if (!isBase(rank) || rank == rank_ || isDead(rank) || followers_.contains(rank) || calls_.contains(rank)) continue;
    if (!knows_.empty() && knows_[static_cast<std::size_t>(rank)]) continue;
    if (const auto found = absences_.find(rank); found != absences_.end() && found->second.nextCall > Clock::now())
      continue;
    call(rank);
  }
}

void Agreement::startBallot() {
  highestRound_ = std::max(highestRound_, acceptor_.promised().round) + 1;
  proposal_.emplace(quorum_, Ballot{highestRound_, rank_});
  asked_ = present();
  phase_ = Phase::preparing;
  phaseSince_ = Clock::now();
  idBringer_ = -1;
  if (request_.purpose == AgreementPurpose::shrink)
    idBringer_ = static_cast<int>(std::ranges::find(asked_, true) - asked_.begin());
  (void)acceptor_.promise(proposal_->ballot());
  proposal_->addPromise(static_cast<std::size_t>(rank_), acceptor_.accepted(), acceptor_.value());
  id_ = idBringer_ == rank_ ? makeUniqueId() : taccUniqueId{};
  MeetingNote note = noteOf(MeetingWord::prepare);
  note.ballot = proposal_->ballot();
  note.rank = idBringer_;
  for (auto& [rank, follower] : followers_)
    if (isBase(rank)) send(*follower.link, note);
  countPromises();
}

void Agreement::receivePromise(int rank, const MeetingNote& note) {
  if (phase_ != Phase::preparing) return;
  proposal_->addPromise(static_cast<std::size_t>(rank), note.accepted, note.value);
  if (rank == idBringer_) id_ = note.id;
  countPromises();
}

void Agreement::countPromises() {
  if (phase_ != Phase::preparing) return;
  const std::vector<bool>& promised = proposal_->promised();
  const std::vector<bool> here = present();
  const bool isShort = isTimeShort();
  bool areAllThere = true;
  for (std::size_t rank = 0; rank < promised.size(); ++rank) {
    if (!asked_[rank] || promised[rank] || memory_.dead[rank]) continue;
    if (here[rank] && secondsSince(phaseSince_) <= (isShort ? keptSeconds() / 2 : patient(answerSeconds))) return;
    areAllThere = false;
  }
  // One that was lost, and has not ended, may come again.
  if (!areAllThere && !isShort) return giveUpBallot();
  const bool hasId = idBringer_ < 0 || promised[static_cast<std::size_t>(idBringer_)];
  if (!proposal_->hasPromises(memory_.dead) || !(hasId || proposal_->inherited() != nullptr)) return giveUpBallot();
  Decision value{request_.flags, promised, id_};
  for (const auto& [rank, follower] : followers_)
    if (promised[static_cast<std::size_t>(rank)]) value.flags &= follower.flags;
  if (proposal_->inherited() != nullptr) value = *proposal_->inherited();
  MeetingNote note = noteOf(MeetingWord::accept);
  note.ballot = proposal_->ballot();
  note.value = value;
  proposal_->propose(value);
  phase_ = Phase::accepting;
  phaseSince_ = Clock::now();
  if (acceptor_.accept(proposal_->ballot(), value)) proposal_->addAccepted(static_cast<std::size_t>(rank_));
  for (auto& [rank, follower] : followers_)
    if (promised[static_cast<std::size_t>(rank)]) send(*follower.link, note);
  if (proposal_->isDecided(memory_.dead)) learn(value);
}

void Agreement::receiveOutbid(const MeetingNote& note) {
  highestRound_ = std::max(highestRound_, note.ballot.round);
  if (role_ == Role::leading && (phase_ == Phase::preparing || phase_ == Phase::accepting)) giveUpBallot();
}

/// Who has not answered in time counts as absent until it calls again.
void Agreement::giveUpBallot() {
  if (proposal_ && secondsSince(phaseSince_) > patient(answerSeconds))
    for (auto one = followers_.begin(); one != followers_.end();) {
      const bool isSilent = one->second.link->silence() > patient(answerSeconds);
      one = isSilent ? followers_.erase(one) : std::next(one);
    }
  proposal_.reset();
  phase_ = Phase::collecting;
  phaseSince_ = Clock::now();
}

void Agreement::inform() {
  phase_ = Phase::informing;
  phaseSince_ = Clock::now();
  knows_.assign(members_.places.size(), false);
  MeetingNote note = noteOf(MeetingWord::decision);
  note.value = acceptor_.value();
  for (auto& [rank, follower] : followers_) send(*follower.link, note);
  areLeftBehindCalled_ = false;
}

void Agreement::keepAlive() {
  if (secondsSince(lastAlive_) < aliveSeconds) return;
  lastAlive_ = Clock::now();
  for (auto& [rank, follower] : followers_) send(*follower.link, noteOf(MeetingWord::alive));
}

std::string Agreement::describeMissing() const {
  std::string names;
  int missing = 0, here = 0, dead = 0, all = 0;
  for (int rank = 0; rank < ranks(); ++rank) {
    if (!isBase(rank)) continue;
    ++all;
    if (isDead(rank)) {
      ++dead;
    } else if (rank == rank_ || followers_.contains(rank)) {
      ++here;
    } else if (missing++ < shown) {
      names += fmt::format("{}{}", names.empty() ? "" : ", ", rank);
    }
  }
  if (missing > shown) names += fmt::format(" and {} more", missing - shown);
  const std::string late = missing == 0 ? "; no message of theirs that was needed came in time"
                                        : fmt::format(
                                              "; rank{} {} did not come and may still live (stopped, or cut off "
                                              "from the network), and those who came are too few to go on "
                                              "without: more than half of all are needed, or half of them with "
                                              "the lowest rank",
                                              missing == 1 ? "" : "s", names);
  return fmt::format("of {} ranks {} came to rank {} within {:.3g} s and {} have ended{}{}", all, here, rank_,
                     request_.seconds, dead, late, describeShortage(door_.shortage()));
}

}  // namespace tacc
