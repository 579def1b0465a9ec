#include "easgd/center_session.hpp"

#include <array>
#include <exception>
#include <utility>
#include <vector>

#include "comm/control/failure.hpp"
#include "core/error.hpp"
#include "core/exceptions.hpp"
#include "core/log.hpp"
#include "transports/shm/cpu_relax.hpp"

namespace tacc {
namespace {

/// Pieces in one turn, so that a busy worker does not keep the others waiting.
constexpr int sessionPieces = 8;
/// Of 16 KiB each: about two pieces.
constexpr int sessionReads = 4;
constexpr double joinSeconds = 10;
constexpr double sessionLeaveSeconds = 5;
/// Who has a lock usually gives it back within microseconds.
constexpr int lockSpins = 200;
constexpr double lockRetrySeconds = 0.001;
constexpr double stallSeconds = 0.001;

std::string describeVersion(std::uint32_t code) {
  return fmt::format("{}.{}.{}", code / 10000, code / 100 % 100, code % 100);
}

/// A reply with room for the numbers behind it.
std::vector<std::byte> makeReply(const CenterReply& head, std::size_t numbers) {
  std::vector<std::byte> bytes(sizeof head + numbers * sizeof(float));
  std::memcpy(bytes.data(), &head, sizeof head);
  return bytes;
}

}  // namespace

CenterSession::CenterSession(Guest guest, CenterMemory& memory, const Introduction& self, std::uint32_t number,
                             double timeout)
    : channel_(std::move(guest.channel)),
      overTcp_(guest.overTcp),
      who_(guest.who),
      self_(self),
      memory_(memory),
      number_(number),
      timeout_(timeout),
      stateEnds_(joinSeconds) {
  channel_.limitPayload(longestCenterMessage);
}

CenterSession::~CenterSession() {
  if (isCounted_) memory_.addWorkers(-1);
}

std::string CenterSession::describe() const { return describePlace(who_, overTcp_); }

void CenterSession::failOnGarbage(const char* what) const {
  fail(taccRemoteError, "{} {}: it is no worker of this center", describe(), what);
}

pollfd CenterSession::descriptor() const noexcept {
  short events = 0;
  // Who does not take its replies, or waits for a lock, is not read from: that bounds what is kept of it.
  if (channel_.hasOutput())
    events = channel_.stalled() ? short{0} : short{POLLOUT};
  else if (!request_)
    events = POLLIN;
  return {channel_.fd(), events, 0};
}

void CenterSession::addDue(Deadline& next) const {
  if (state_ == State::joining || state_ == State::leaving) next = std::min(next, stateEnds_);
  if (channel_.stalled()) next = std::min(next, Deadline(stallSeconds));
  if (request_ && !channel_.hasOutput()) next = std::min(next, givesUp_ ? retries_ : Deadline(0));
}

void CenterSession::progress(short revents) noexcept {
  try {
    step(revents);
  } catch (const std::exception& error) {
    log(LogLevel::warn, noRank, "a worker of the center was cut off: {}", error.what());
    state_ = State::over;
  }
  if (state_ == State::over) request_.reset();
}

void CenterSession::step(short revents) {
  const bool hasTime = (state_ != State::joining && state_ != State::leaving) || !stateEnds_.passed();
  // POLLHUP: both directions are closed. What it asked for before, it does not want any more.
  if (!hasTime || (revents & (POLLERR | POLLNVAL | POLLHUP)) != 0 || !channel_.flush()) {
    state_ = State::over;
    return;
  }
  bool isReadable = (revents & POLLIN) != 0;
  serveSome(isReadable);
  if (state_ != State::leaving || channel_.hasOutput()) return;
  channel_.finish();
  state_ = State::over;
}

void CenterSession::serveSome(bool& isReadable) {
  for (int served = 0; state_ != State::over && state_ != State::leaving && !channel_.hasOutput();) {
    if (!request_) request_ = channel_.take();
    if (!request_ && std::exchange(isReadable, false)) {
      if (!channel_.receive(sessionReads)) state_ = State::over;
      continue;
    }
    if (!request_ || served == sessionPieces || (givesUp_ && !retries_.passed()) || !serve(*request_)) return;
    request_.reset();
    givesUp_.reset();
    ++served;
    if (!channel_.flush()) state_ = State::over;
  }
}

bool CenterSession::serve(const Message& message) {
  if (state_ == State::joining) {
    join(message);
    return true;
  }
  if (state_ != State::served) failOnGarbage("speaks though it has mapped the center");
  const auto request = centerRequestIn(message, memory_.size());
  if (!request) failOnGarbage("sent what is no request");
  if (request->operation == failedOperation_) return true;
  return answer(*request, message);
}

void CenterSession::checkJoin(const CenterJoin& join) const {
  const std::string here = describePlace(self_, overTcp_);
  if (who_.libraryVersion != TACC_VERSION_CODE || join.protocol != centerProtocol) {
    fail(taccInvalidUsage, "{} runs tacc {}, the center's {} runs tacc {}: use one version", describe(),
         describeVersion(who_.libraryVersion), here, describeVersion(TACC_VERSION_CODE));
  }
  if (who_.encrypts != self_.encrypts) {
    const auto setting = [](const Introduction& one) { return one.encrypts != 0 ? "on" : "off"; };
    fail(taccInvalidUsage, "{} has TACC_ENCRYPTION {}, the center's {} has it {}: set it alike", describe(),
         setting(who_), here, setting(self_));
  }
  if (join.count != memory_.size()) {
    fail(taccInvalidUsage, "{} asks for a center of {} numbers, that of {} has {}", describe(), join.count, here,
         memory_.size());
  }
}

void CenterSession::join(const Message& message) {
  const auto join = valueIn<CenterJoin>(message);
  if (message.kind != MessageKind::centerJoin || !join) failOnGarbage("asked for no seat");
  try {
    checkJoin(*join);
  } catch (const Error& error) {
    log(LogLevel::warn, noRank, "a worker was refused by the center: {}", error.what());
    channel_.queue(MessageKind::failure, describeFailure(error));
    state_ = State::leaving;
    stateEnds_ = Deadline(sessionLeaveSeconds);
    return;
  }
  isCounted_ = true;
  memory_.addWorkers(1);
  const bool maps = join->wantsMemory != 0 && !overTcp_;
  const CenterSeat seat{memory_.size(), number_, memory_.isLocked() ? 1U : 0U, maps ? 1U : 0U, 0};
  const std::array<int, 1> descriptor{memory_.fd()};
  channel_.queue(MessageKind::centerSeat, payloadOf(seat), std::span(descriptor).first(maps ? 1 : 0));
  state_ = maps ? State::mapped : State::served;
}

bool CenterSession::answer(const CenterRequest& request, const Message& message) {
  const bool brings = request.action == CenterAction::move || request.action == CenterAction::read;
  CenterReply head{request.first, 0, 0, request.operation, request.elements, 0, 0};
  std::vector<std::byte> reply = makeReply(head, brings ? request.elements : 0);
  if (request.action != CenterAction::count && !access(request, message, reply.data() + sizeof head)) {
    if (!givesUp_) givesUp_ = deadlineOf(timeout_);
    retries_ = Deadline(lockRetrySeconds);
    if (!givesUp_->passed()) return false;
    failedOperation_ = request.operation;
    try {
      memory_.failOnHolder(request.first, timeout_);
    } catch (const Error& error) {
      channel_.queue(MessageKind::centerFailure, describeCenterFailure(request.operation, error));
    }
    return true;
  }
  const bool completes = request.action == CenterAction::move && request.isLast != 0;
  head.updates = completes ? memory_.addUpdate() : memory_.updates();
  head.inherited = memory_.inherited();
  head.workers = memory_.workers();
  std::memcpy(reply.data(), &head, sizeof head);
  channel_.queue(MessageKind::centerReply, makePayload(std::move(reply)));
  return true;
}

bool CenterSession::access(const CenterRequest& request, const Message& message, std::byte* result) {
  float* const numbers = reinterpret_cast<float*>(result);
  const float* const given = numbersIn<CenterRequest>(message);
  for (int i = 0; i < lockSpins; ++i) {
    bool done = false;
    if (request.action == CenterAction::move)
      done = memory_.tryAccess(request.first, request.elements, CenterMemory::Move{given, request.alpha, numbers});
    else if (request.action == CenterAction::read)
      done = memory_.tryAccess(request.first, request.elements, CenterMemory::Read{numbers});
    else
      done = memory_.tryAccess(request.first, request.elements, CenterMemory::Write{given});
    if (done) return true;
    relaxCpu();
  }
  return false;
}

void CenterSession::sayFarewell(const Error& error) noexcept {
  if (state_ != State::served) return;
  try {
    channel_.dropUnsent();
    channel_.queue(MessageKind::failure, describeFailure(error));
    (void)channel_.flush();
    channel_.finish();
  } catch (const std::exception&) {
    // The end of the connection tells it as well.
  }
}

}  // namespace tacc
