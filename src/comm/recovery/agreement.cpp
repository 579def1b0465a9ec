#include "comm/recovery/agreement.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "transports/shm/presence.hpp"
#include "transports/spare_descriptors.hpp"

namespace tacc {
namespace {

constexpr double busyTick = 0.01, idleTick = 0.1;  // between looks at the clocks; idle: of one who follows
/// A rank out of time still waits for the end of a ballot in which it has taken part: it mostly takes milliseconds.
constexpr double ballotGrace = 1.0;
constexpr double farewellSeconds = 0.5;  // for all to be told why it has failed

std::string describe(AgreementPurpose purpose) {
  switch (purpose) {
    case AgreementPurpose::flags:
      return "taccCommAgree";
    case AgreementPurpose::shrink:
      return "taccCommShrink";
    case AgreementPurpose::joined:
      return "the end of taccCommShrink";
  }
  return "?";
}

std::vector<bool> baseOf(const AgreementRequest& request) {
  std::vector<bool> base = request.excluded;
  base.flip();
  return base;
}

}  // namespace

Agreement::Agreement(const MeetingMembers& members, Door& door, const Interrupt& interrupt, AgreementMemory& memory,
                     AgreementRequest request, const MeetingObserver& observer)
    : members_(members),
      door_(door),
      interrupt_(interrupt),
      memory_(memory),
      request_(std::move(request)),
      observer_(observer),
      rank_(members.rank),
      quorum_(baseOf(request_)),
      digest_(digestOf(quorum_.base())),
      deadline_(after(request_.seconds)),
      hasVisited_(members.places.size()) {
  for (int rank = 0; rank < rank_; ++rank)
    if (isBase(rank)) below_.push_back(rank);
  door_.receiveFor(members_, visitors_);
}

Decision Agreement::run() {
  beginSearch();
  while (!isFinished_) turn();
  return *acceptor_.value();
}

std::vector<MeetingLink*> Agreement::links() const {
  std::vector<MeetingLink*> all;
  for (const auto& visitor : visitors_) all.push_back(visitor.get());
  for (const auto& [rank, link] : calls_) all.push_back(link.get());
  return all;
}

/// Waits until somebody speaks or comes, or `seconds` have passed.
void Agreement::listen(double seconds) {
  const std::vector<MeetingLink*> open = links();
  std::vector<pollfd> sockets;
  for (const MeetingLink* link : open) sockets.push_back(link->descriptor());
  door_.addDescriptors(sockets);
  waitFor(sockets, interrupt_, Deadline(seconds));
  for (std::size_t i = 0; i < open.size(); ++i)
    if (sockets[i].revents != 0) open[i]->progress();
  door_.serve(std::span(sockets).subspan(open.size(), sockets.size() - open.size()));
}

void Agreement::turn() {
  // Of many ranks on few cores, those that only look at clocks must not hold up the one that leads.
  const double tick = role_ == Role::leading ? busyTick : busyTick + 1e-4 * ranks();
  // Ranks that have come are heard before anything is decided: it may be word that the others have gone on.
  listen(role_ == Role::following && !decidedSince_ ? std::max(idleTick, tick) : tick);
  for (MeetingLink* link : links()) drain(*link);
  if (members_.presence) hearOfPassed(members_.presence->passed());
  std::erase_if(followers_, [](const auto& one) { return one.second.link->isOver(); });
  std::erase_if(visitors_, [](const auto& one) { return one->isOver(); });
  tendCalls();
  switch (role_) {
    case Role::searching:
      lookFurther();
      break;
    case Role::following:
      tendLeader();
      break;
    case Role::leading:
      lead();
      break;
  }
  if (!isFinished_ && !acceptor_.hasDecided() && secondsSince(deadline_) > (isInBallot() ? ballotGrace : 0))
    failForTime();
}

void Agreement::drain(MeetingLink& link) {
  while (const auto note = link.take()) {
    if (observer_) observer_("got " + std::string(nameOf(note->word)));
    handle(link, *note);
  }
  if (link.failure())
    fail(link.failure()->result(), "{}{}", link.failure()->what(), describeShortage(door_.shortage()));
  hearOfPassed(link.word());
}

void Agreement::hearOfPassed(std::optional<std::uint32_t> instance) const {
  if (instance && *instance >= memory_.instance && !acceptor_.hasDecided())
    fail(taccRemoteError, "rank {} came too late: the others have gone on without it", rank_);
}

MeetingNote Agreement::noteOf(MeetingWord word) const {
  return {.word = word,
          .instance = memory_.instance,
          .purpose = request_.purpose,
          .flags = request_.flags,
          .rank = rank_,
          .ballot = acceptor_.promised(),
          .accepted = {},
          .base = digest_,
          .seconds = std::max(0.0, -secondsSince(deadline_)),
          .value = {},
          .id = {}};
}

void Agreement::send(MeetingLink& to, const MeetingNote& note) {
  if (observer_) observer_("send " + std::string(nameOf(note.word)));
  to.send(note);
}

void Agreement::handle(MeetingLink& from, const MeetingNote& note) {
  if (note.instance != memory_.instance) return handleOther(from, note);
  checkRequest(from, note);
  const bool isMine = role_ == Role::leading && proposal_ && note.ballot == proposal_->ballot();
  switch (note.word) {
    case MeetingWord::visit:
      return receiveVisit(from, note);
    case MeetingWord::leader:
      return hearOfLeader(from, note.rank);
    case MeetingWord::decision:
      if (note.value) learn(*note.value);
      return send(from, noteOf(MeetingWord::known));
    case MeetingWord::known:
      if (!knows_.empty()) knows_[static_cast<std::size_t>(from.peer())] = true;
      return;
    case MeetingWord::promise:
      if (isMine) receivePromise(from.peer(), note);
      return;
    case MeetingWord::accepted:
      if (!isMine) return;
      proposal_->addAccepted(static_cast<std::size_t>(from.peer()));
      if (phase_ == Phase::accepting && proposal_->isDecided(memory_.dead)) learn(*proposal_->value());
      return;
    case MeetingWord::outbid:
      return receiveOutbid(note);
    default:
      return obey(from, note);
  }
}

/// Ranks are in different agreements: one of them came too late for an earlier one, of which the other knows the end.
void Agreement::handleOther(MeetingLink& from, const MeetingNote& note) {
  if (note.word == MeetingWord::decision || note.word == MeetingWord::known || note.word == MeetingWord::done) return;
  if (note.instance > memory_.instance) {  // the answer shows it that this rank is behind
    if (note.word == MeetingWord::visit) send(from, noteOf(MeetingWord::leader));
    return;
  }
  const auto found = memory_.decided.find(note.instance);
  if (found == memory_.decided.end() || found->second.purpose != note.purpose) return;
  MeetingNote answer = noteOf(MeetingWord::decision);
  answer.instance = note.instance;
  answer.purpose = note.purpose;
  answer.base = note.base;
  answer.value = found->second.decision;
  send(from, answer);
}

void Agreement::checkRequest(MeetingLink& from, const MeetingNote& note) {
  if (note.purpose != request_.purpose)
    failForAll({taccInvalidUsage, fmt::format("rank {} is in {} while rank {} is in {}: all ranks must make the same "
                                              "calls in the same order",
                                              rank_, describe(request_.purpose), from.peer(), describe(note.purpose))});
  if (note.base != digest_)
    failForAll({taccInvalidUsage, fmt::format("ranks {} and {} exclude different ranks in {}: excludeRanksList must be "
                                              "the same on all",
                                              rank_, from.peer(), describe(request_.purpose))});
}

void Agreement::receiveVisit(MeetingLink& from, const MeetingNote& note) {
  const int rank = from.peer();
  highestRound_ = std::max(highestRound_, note.ballot.round);
  followers_[rank] = {&from, note.flags, after(note.seconds)};
  absences_.erase(rank);
  if (note.value) learn(*note.value);
  if (acceptor_.hasDecided()) {
    MeetingNote answer = noteOf(MeetingWord::decision);
    answer.value = acceptor_.value();
    return send(from, answer);
  }
  if (role_ == Role::searching) return;  // told when it is known
  MeetingNote answer = noteOf(MeetingWord::leader);
  answer.rank = role_ == Role::leading ? rank_ : leader_;
  send(from, answer);
}

void Agreement::learn(const Decision& value) {
  if (acceptor_.hasDecided()) return;
  acceptor_.learn(value);
  if (role_ == Role::leading) return inform();
  decidedSince_ = Clock::now();
  if (role_ == Role::searching) helpUntil_ = after(0.5);
  // It may have come from another than the leader, who then does not know it yet.
  if (role_ == Role::following) {
    MeetingNote note = noteOf(MeetingWord::decision);
    note.value = value;
    send(*calls_.at(leader_), note);
  }
}

bool Agreement::isInBallot() const noexcept {
  return role_ == Role::leading ? phase_ != Phase::collecting
                                : role_ == Role::following && acceptor_.promised().rank == leader_;
}

/// Also those that are about to come: else they would wait for this rank until their time is over.
void Agreement::failForAll(const Error& error) {
  std::vector<bool> isTold(members_.places.size());
  isTold[static_cast<std::size_t>(rank_)] = true;
  const Time end = after(farewellSeconds);
  for (bool areAllTold = false; !areAllTold && Clock::now() < end;) {
    for (MeetingLink* link : links()) {
      link->progress();
      if (link->state() == MeetingLink::State::open && !isTold[static_cast<std::size_t>(link->peer())]) {
        link->sendFailure(error);
        isTold[static_cast<std::size_t>(link->peer())] = true;
      }
    }
    areAllTold = true;
    for (int rank = 0; rank < ranks(); ++rank) {
      if (!isBase(rank) || isDead(rank) || isTold[static_cast<std::size_t>(rank)]) continue;
      areAllTold = false;
      if (!calls_.contains(rank) && absences_[rank].nextCall < Clock::now()) call(rank);
    }
    if (!areAllTold) listen(busyTick);
    tendCalls();
  }
  throw error;
}

void Agreement::failForTime() {
  const std::string what = describe(request_.purpose);
  if (role_ == Role::leading) {
    const Error error(taccTimeout, fmt::format("{}: {}", what, describeMissing()));
    phase_ == Phase::collecting ? failForAll(error) : throw error;
  }
  if (role_ == Role::following)
    fail(taccTimeout, "{}: rank {} followed rank {}, which did not come to an end in {:.3g} s", what, rank_, leader_,
         request_.seconds);
  fail(taccTimeout, "{}: rank {} found no rank to follow in {:.3g} s", what, rank_, request_.seconds);
}

}  // namespace tacc
