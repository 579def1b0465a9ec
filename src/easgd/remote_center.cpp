#include "easgd/remote_center.hpp"

#include <cstring>
#include <utility>
#include <vector>

#include "comm/control/failure.hpp"
#include "core/error.hpp"
#include "easgd/center_memory.hpp"

namespace tacc {
namespace {

/// Of 16 KiB each.
constexpr int answerReadsAtOnce = 8;
/// How much longer than the center a worker waits: the center's message about a lock that is held too long is the
/// better one.
constexpr double graceSeconds = 2;

}  // namespace

RemoteCenter::RemoteCenter(CenterEntry entry, double timeout)
    : Center(entry.seat.count, entry.seat.isLocked != 0), link_(std::move(entry.link)), timeout_(timeout) {}

CenterRequest RemoteCenter::request(CenterAction action, std::size_t piece, std::size_t pieces,
                                    float alpha) const noexcept {
  const std::size_t first = piece * pieceElements;
  const std::size_t n = action == CenterAction::count ? 0 : elementsAt(size(), first);
  return {first, action, operation_, static_cast<std::uint32_t>(n), alpha, piece + 1 == pieces ? 1U : 0U, 0};
}

Deadline RemoteCenter::silenceEnds() const { return deadlineOf(timeout_ > 0 ? timeout_ + graceSeconds : 0); }

void RemoteCenter::ask(const CenterRequest& request, const float* numbers) {
  const std::size_t bytes = numbers == nullptr ? 0 : request.elements * sizeof(float);
  std::vector<std::byte> payload(sizeof request + bytes);
  std::memcpy(payload.data(), &request, sizeof request);
  if (bytes > 0) std::memcpy(payload.data() + sizeof request, numbers + request.first, bytes);
  link_.channel.queue(MessageKind::centerRequest, makePayload(std::move(payload)));
}

template <class OnReply>
void RemoteCenter::operate(CenterAction action, std::size_t pieces, const float* numbers, float alpha,
                           const OnReply& onReply) {
  if (lost_) throw Error(*lost_);
  ++operation_;
  std::size_t asked = 0, answered = 0;
  Deadline silence = silenceEnds();
  bool isOpen = true;
  while (answered < pieces) {
    // A piece is made when the socket takes it: the system's buffers hold as many as the link needs.
    while (isOpen && asked < pieces && !link_.channel.hasOutput()) {
      ask(request(action, asked++, pieces, alpha), numbers);
      isOpen = link_.channel.flush();
    }
    isOpen = isOpen && link_.channel.flush();
    const bool hears = link_.channel.receive(answerReadsAtOnce);
    bool moved = false;
    while (const auto message = answered < pieces ? nextMessage() : std::nullopt) {
      const auto reply = centerReplyIn(*message, request(action, answered, pieces, alpha));
      if (!reply)
        lose(Error(taccRemoteError,
                   fmt::format("{}, which keeps the center, answers what was not asked", link_.describe())));
      last_ = *reply;
      ++answered;
      moved = true;
      onReply(*reply, numbersIn<CenterReply>(*message));
    }
    if (answered == pieces) break;
    if (moved) silence = silenceEnds();
    if (!hears || !isOpen) loseLink();
    if (moved || (asked < pieces && !link_.channel.hasOutput())) continue;
    await(silence);
    if (silence.passed()) failSilent();
  }
}

/// A failure of this operation, or of the center as a whole, is thrown. What belongs to an earlier operation, which
/// ended before its replies had come, is passed over.
std::optional<Message> RemoteCenter::nextMessage() {
  while (auto message = link_.channel.take()) {
    if (message->kind == MessageKind::failure) lose(remoteFailureIn(*message));
    if (message->kind == MessageKind::centerFailure) {
      const auto failure = headIn<CenterFailure>(*message);
      if (!failure || failure->operation == operation_) throw centerFailureIn(*message);
      continue;
    }
    const auto reply = headIn<CenterReply>(*message);
    const bool isOld = message->kind == MessageKind::centerReply && reply && reply->operation != operation_;
    if (!isOld) return message;
  }
  return std::nullopt;
}

void RemoteCenter::await(const Deadline& deadline) {
  std::vector<pollfd> socket{
      {link_.channel.fd(), static_cast<short>(link_.channel.hasOutput() ? POLLIN | POLLOUT : POLLIN), 0}};
  waitFor(socket, interrupt_, deadline);
}

void RemoteCenter::failSilent() {
  link_.channel.dropUnsent();
  fail(taccTimeout, "{}, which keeps the center, has not answered for {:.3g} s", link_.describe(), timeout_);
}

void RemoteCenter::loseLink() {
  try {
    link_.failEnded();
  } catch (const Error& error) {
    lose(error);
  }
}

void RemoteCenter::lose(const Error& error) {
  lost_ = error;
  link_.channel = Channel(FileDescriptor());
  throw Error(error);
}

void RemoteCenter::exchange(const float* weights, float alpha, const Sink& sink) {
  operate(CenterAction::move, piecesOf(size()), weights, alpha,
          [&](const CenterReply& reply, const float* difference) { sink(reply.first, reply.elements, difference); });
  lastUpdate_ = last_.updates;
  ++ownUpdates_;
  bytes_ += 2 * size() * sizeof(float);
}

void RemoteCenter::read(float* out) {
  operate(CenterAction::read, piecesOf(size()), nullptr, 0, [&](const CenterReply& reply, const float* values) {
    std::memcpy(out + reply.first, values, reply.elements * sizeof(float));
  });
  bytes_ += size() * sizeof(float);
}

void RemoteCenter::write(const float* values) {
  operate(CenterAction::write, piecesOf(size()), values, 0, [](const CenterReply&, const float*) {});
  bytes_ += size() * sizeof(float);
}

CenterCounts RemoteCenter::counts() {
  operate(CenterAction::count, 1, nullptr, 0, [](const CenterReply&, const float*) {});
  return {last_.updates, ownUpdates_, bytes_, last_.inherited, last_.workers};
}

}  // namespace tacc
