#include "comm/bootstrap/meeting_link.hpp"

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

#include "comm/control/failure.hpp"
#include "transports/shm/presence.hpp"

namespace tacc {

MeetingLink::MeetingLink(const MeetingMembers& members, int peer) : members_(members), isCaller_(true), peer_(peer) {
  begin();
}

MeetingLink::MeetingLink(const MeetingMembers& members, FileDescriptor socket) : members_(members), isCaller_(false) {
  adopt(std::move(socket));
  challenge_.nonce = makeNonce();
  channel_->queue(MessageKind::challenge, payloadOf(challenge_));
  progress();
}

MeetingLink::~MeetingLink() {
  if (state_ == State::open) channel_->finish();
}

void MeetingLink::begin() {
  const SurvivorPlace& place = members_.places[static_cast<std::size_t>(peer_)];
  if (place.port != 0) {
    if (!beginTcp(InetAddress(place.address, place.port), attempt_))
      state_ = attempt_.isRefused ? State::refused : State::lost;
    return;
  }
  // Before the attempt: one that opens its place and closes it in between is found gone the next time.
  const bool isThere = members_.presence != nullptr && members_.presence->isThere(peer_);
  // It comes from a peer, and may have no end.
  attempt_ = connectUnix(std::string(place.name.begin(), std::ranges::find(place.name, '\0')));
  isEarly_ = attempt_.isRefused && isThere;
  if (attempt_.socket.valid()) return adopt(std::move(attempt_.socket));
  state_ = isEarly_ ? State::proving : attempt_.isRefused ? State::refused : State::lost;
}

void MeetingLink::adopt(FileDescriptor socket) {
  channel_.emplace(std::move(socket));
  state_ = State::proving;
}

pollfd MeetingLink::descriptor() const noexcept {
  if (isOver() || isEarly_) return {-1, 0, 0};
  if (!channel_) return {attempt_.socket.get(), POLLOUT, 0};
  return {channel_->fd(), static_cast<short>(channel_->hasOutput() ? POLLIN | POLLOUT : POLLIN), 0};
}

void MeetingLink::progress() noexcept {
  try {
    if (!isOver()) step();
  } catch (const std::exception&) {
    state_ = State::lost;
  }
}

void MeetingLink::step() {
  if (isEarly_) {
    begin();
    return;
  }
  if (state_ == State::connecting) {
    finishTcp(attempt_);
    if (!attempt_.socket.valid()) {
      state_ = attempt_.isRefused ? State::refused : State::lost;
      return;
    }
    adopt(std::move(attempt_.socket));
  }
  // What came before the end is still taken, also where nothing can be sent any more.
  const bool canSend = channel_->flush();
  const bool isOpen = channel_->receive() && canSend;
  while (state_ == State::proving) {
    const auto message = channel_->take();
    if (!message) break;
    heard_ = Clock::now();
    isCaller_ ? proveAsCaller(*message) : proveAsHost(*message);
    if (state_ != State::lost && !channel_->flush()) break;
  }
  if (!isOpen) state_ = State::lost;
}

Introduction MeetingLink::introduceSelf() const {
  return tacc::introduceSelf(static_cast<int>(members_.places.size()), members_.rank, members_.encrypts);
}

void MeetingLink::proveAsCaller(const Message& message) {
  if (!hello_) {
    const auto challenge = valueIn<Challenge>(message);
    if (message.kind != MessageKind::challenge || !challenge) {
      state_ = State::lost;
      return;
    }
    challenge_ = *challenge;
    hello_ = answerChallenge(members_.secret, challenge_, introduceSelf());
    channel_->queue(MessageKind::hello, payloadOf(*hello_));
    return;
  }
  const auto welcome = valueIn<Welcome>(message);
  const bool isGood = message.kind == MessageKind::welcome && welcome &&
                      isGenuine(members_.secret, challenge_, *hello_, *welcome) &&
                      welcome->who.rank == static_cast<std::uint32_t>(peer_);
  if (!isGood) {
    state_ = State::lost;
    return;
  }
  trustHost(*channel_, members_.secret, challenge_, *hello_, *welcome);
  state_ = State::open;
  isProven_ = true;
}

void MeetingLink::leaveWord(std::uint32_t instance) noexcept {
  if (!canLeaveWord() || state_ != State::proving) return;
  if (isEarly_) return members_.presence->tellPassed(peer_, instance);
  try {
    channel_->queue(MessageKind::leftBehind, payloadOf(leftBehind(members_.secret, instance, peer_)));
    (void)channel_->flush();
  } catch (const std::exception&) {
    state_ = State::lost;
  }
}

void MeetingLink::proveAsHost(const Message& message) {
  if (message.kind == MessageKind::leftBehind) {
    if (const auto word = valueIn<LeftBehind>(message); word && isGenuine(members_.secret, *word, members_.rank))
      word_ = word->instance;
    state_ = State::lost;
    return;
  }
  const auto hello = valueIn<Hello>(message);
  if (message.kind != MessageKind::hello || !hello || !isGenuine(members_.secret, challenge_, *hello) ||
      hello->who.rank >= members_.places.size() || hello->who.rank == static_cast<std::uint32_t>(members_.rank)) {
    state_ = State::lost;
    return;
  }
  peer_ = static_cast<int>(hello->who.rank);
  const Introduction self = introduceSelf();
  channel_->queue(MessageKind::welcome, payloadOf(answerHello(members_.secret, challenge_, *hello, self)));
  trustJoiner(*channel_, members_.secret, challenge_, *hello, self);
  state_ = State::open;
  isProven_ = true;
}

void MeetingLink::send(const MeetingNote& note) noexcept {
  if (state_ != State::open) return;
  try {
    channel_->queue(MessageKind::meeting, payloadOf(note));
    (void)channel_->flush();  // an end is noticed where what came before it is read
  } catch (const std::exception&) {
    state_ = State::lost;
  }
}

void MeetingLink::sendFailure(const Error& error) noexcept {
  if (state_ != State::open) return;
  try {
    channel_->queue(MessageKind::failure, describeFailure(error));
    (void)channel_->flush();
  } catch (const std::exception&) {
    state_ = State::lost;
  }
}

std::optional<MeetingNote> MeetingLink::take() {
  if (!isProven_) return std::nullopt;
  const auto message = channel_->take();
  if (!message) return std::nullopt;
  heard_ = Clock::now();
  if (message->kind == MessageKind::failure) {
    failure_ = failureIn(*message);
    return std::nullopt;
  }
  auto note = meetingNoteIn(*message, members_.places.size());
  if (!note) state_ = State::lost;
  return note;
}

}  // namespace tacc
