// Whom a rank follows, and how it does.
#include <algorithm>

#include "comm/bootstrap/unique_id.hpp"
#include "comm/recovery/agreement.hpp"

namespace tacc {
namespace {

/// A rank that listens and does not answer may be late, or stopped: others are looked at meanwhile.
constexpr double patience = 0.1;
constexpr double leaderAnswerSeconds = 1;  // for one that takes part to know who leads
constexpr double connectSeconds = 3;       // three lost packets in a row; then it is called on again
constexpr double callAgainSeconds = 0.1;
constexpr double leaderSilence = 2;  // it says something every 0.3 s
/// For the others to know the decision too. Longer than the silence after which they look for somebody who knows it,
/// where the leader stopped before it had told them all.
constexpr double doneSeconds = leaderSilence + 1;
constexpr double helpSeconds = 0.5;
/// Ranks that are called on at the same time. At first one, for mostly it lives; then more, because each rank of a host
/// that has gone takes the whole time that a connection may take.
constexpr std::size_t widening = 8, widest = 64;

}  // namespace

/// Before a link ends: nobody follows over it any more.
void Agreement::forgetFollower(const MeetingLink* link) {
  std::erase_if(followers_, [link](const auto& one) { return one.second.link == link; });
}

void Agreement::call(int rank) {
  if (const auto old = calls_.find(rank); old != calls_.end()) forgetFollower(old->second.get());
  hasVisited_[static_cast<std::size_t>(rank)] = false;
  calls_[rank] = std::make_unique<MeetingLink>(members_, rank);
  tendCalls();
}

void Agreement::tendCalls() {
  using State = MeetingLink::State;
  for (auto one = calls_.begin(); one != calls_.end();) {
    const auto [rank, link] = std::pair(one->first, one->second.get());
    const auto index = static_cast<std::size_t>(rank);
    if (link->isEarly()) link->progress();
    Absence& absence = absences_[rank];
    const bool isTooSlow = link->state() == State::connecting && link->age() > connectSeconds;
    if (link->state() == State::refused) memory_.dead[index] = true;
    if (link->state() == State::proving || link->state() == State::open) absence.unreachableSince.reset();
    if (isTooSlow || link->state() == State::lost) {
      // One that was reached and closed has no room for callers, or has ended: the next call shows it.
      if (!absence.unreachableSince && !hasVisited_[index])
        absence.unreachableSince = after(isTooSlow ? -connectSeconds : 0);
      absence.nextCall = after(callAgainSeconds);
    }
    if (link->state() == State::open && !hasVisited_[index]) {
      hasVisited_[index] = true;
      // Who leads tells those above it where to come to.
      rank < rank_ || rank == target_ ? sendVisit(*link) : send(*link, noteOf(MeetingWord::leader));
    }
    // Who follows one leader takes back its visits to others, who may only now come to read them.
    const bool isLeft = role_ == Role::following && rank != leader_;
    const bool isOver = link->isOver() || isTooSlow || isLeft;
    if (isOver && role_ == Role::following && rank == leader_) beginSearch();
    if (isOver) forgetFollower(link);
    one = isOver ? calls_.erase(one) : std::next(one);
  }
}

void Agreement::sendVisit(MeetingLink& to) {
  MeetingNote note = noteOf(MeetingWord::visit);
  if (acceptor_.hasDecided()) note.value = acceptor_.value();
  send(to, note);
}

void Agreement::beginSearch() {
  role_ = Role::searching;
  leader_ = target_ = -1;
  first_ = last_ = 0;
  width_ = 1;
  if (decidedSince_) helpUntil_ = after(helpSeconds);
}

/// Nothing is to be expected of it now.
bool Agreement::isPassed(int rank) const {
  if (isDead(rank)) return true;
  const auto found = calls_.find(rank);
  if (found == calls_.end()) return absences_.contains(rank) && absences_.at(rank).nextCall > Clock::now();
  const MeetingLink& link = *found->second;
  if (link.state() == MeetingLink::State::open) return link.silence() > patient(leaderAnswerSeconds);
  return link.age() > patient(patience);
}

void Agreement::lookFurther() {
  if (helpUntil_ && Clock::now() > *helpUntil_) {
    memory_.isWanted = true;
    isFinished_ = true;
    return;
  }
  if (target_ >= 0) {
    if (!isPassed(target_)) {
      if (!calls_.contains(target_)) call(target_);
      return;
    }
    target_ = -1;
  }
  while (std::all_of(below_.begin() + static_cast<std::ptrdiff_t>(first_),
                     below_.begin() + static_cast<std::ptrdiff_t>(last_),
                     [this](int rank) { return isPassed(rank); })) {
    if (last_ == below_.size()) return beginToLead();
    first_ = last_;
    last_ = std::min(below_.size(), first_ + width_);
    width_ = std::min(width_ * widening, widest);
    for (std::size_t i = first_; i < last_; ++i)
      if (!isDead(below_[i]) && !calls_.contains(below_[i])) call(below_[i]);
  }
}

void Agreement::hearOfLeader(MeetingLink& from, int rank) {
  if (rank < 0 || !isBase(rank)) return;
  switch (role_) {
    case Role::leading:
      if (phase_ == Phase::collecting && rank < rank_) goTo(rank);
      return;
    case Role::following:
      if (from.peer() == leader_ && rank != leader_) goTo(rank);
      return;
    case Role::searching:
      return goTo(rank);
  }
}

void Agreement::goTo(int rank) {
  if (rank == rank_) return role_ == Role::leading ? void() : beginToLead();
  const auto known = calls_.find(rank);
  const bool isOpen = known != calls_.end() && known->second->state() == MeetingLink::State::open;
  if (isOpen && hasVisited_[static_cast<std::size_t>(rank)]) return follow(rank);
  role_ = Role::searching;
  leader_ = -1;
  target_ = rank;
  absences_[rank].nextCall = {};  // it has shown itself
}

void Agreement::follow(int rank) {
  // A rank above this one may only have been told who led here.
  if (rank > rank_) sendVisit(*calls_.at(rank));
  role_ = Role::following;
  leader_ = rank;
  target_ = -1;
  proposal_.reset();
  phase_ = Phase::collecting;
  announceLeader(rank);
}

void Agreement::announceLeader(int rank) {
  MeetingNote note = noteOf(MeetingWord::leader);
  note.rank = rank;
  for (auto& [other, follower] : followers_)
    if (other != rank) send(*follower.link, note);
}

/// What a leader asks.
void Agreement::obey(MeetingLink& from, const MeetingNote& note) {
  if (role_ != Role::following || from.peer() != leader_ || &from != calls_.at(leader_).get()) return;
  if (note.word == MeetingWord::prepare) {
    const bool isPromised = acceptor_.promise(note.ballot);
    MeetingNote answer = noteOf(isPromised ? MeetingWord::promise : MeetingWord::outbid);
    answer.value = acceptor_.value();
    answer.accepted = acceptor_.accepted();
    if (isPromised && note.rank == rank_) answer.id = makeUniqueId();
    if (isPromised) answer.ballot = note.ballot;
    send(from, answer);
  } else if (note.word == MeetingWord::accept && note.value) {
    MeetingNote answer =
        noteOf(acceptor_.accept(note.ballot, *note.value) ? MeetingWord::accepted : MeetingWord::outbid);
    if (answer.word == MeetingWord::accepted) answer.ballot = note.ballot;
    send(from, answer);
  } else if (note.word == MeetingWord::done && acceptor_.hasDecided()) {
    memory_.isWanted = memory_.isWanted || note.flags == 0;
    isFinished_ = true;
  }
}

void Agreement::tendLeader() {
  const MeetingLink& link = *calls_.at(leader_);
  if (decidedSince_ && secondsSince(*decidedSince_) > patient(doneSeconds)) {
    memory_.isWanted = true;
    isFinished_ = true;
  } else if (link.silence() > patient(leaderSilence)) {
    absences_[leader_].nextCall = after(connectSeconds);
    forgetFollower(&link);
    calls_.erase(leader_);
    beginSearch();
  }
}

}  // namespace tacc
