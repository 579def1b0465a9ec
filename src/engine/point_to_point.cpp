#include "engine/point_to_point.hpp"

#include <algorithm>
#include <cstring>

#include "core/error.hpp"
#include "core/types.hpp"

namespace tacc {
namespace {

constexpr std::size_t pieceCount = 8;  // of a rank's pair buffer

std::uint64_t encodeOperation(std::size_t bytes, taccDataType_t type, bool direct) {
  return static_cast<std::uint64_t>(bytes) << 8 | static_cast<std::uint64_t>(type) << 1 | (direct ? 1U : 0U);
}

/// Operations are the caller's, and gone with the end of a run.
template <class List>
class Forgotten {
 public:
  explicit Forgotten(List& list) : list_(list) {}
  ~Forgotten() { list_.clear(); }
  Forgotten(const Forgotten&) = delete;
  Forgotten& operator=(const Forgotten&) = delete;

 private:
  List& list_;
};

}  // namespace

PointToPointEngine::PointToPointEngine(const NodeSegment& segment, int rank, Waiter& waiter,
                                       const BufferExchange& buffers)
    : segment_(segment),
      rank_(rank),
      waiter_(waiter),
      buffers_(buffers),
      pieceBytes_(segment.geometry().pairBytes / pieceCount),
      pieces_(pieceCount) {}

void PointToPointEngine::run(std::span<const PointToPoint> operations) {
  const Forgotten forgotten(progress_);
  // A run ends when all that it sent has been taken. A piece that were freed only when another is wanted could wait
  // until the count of its receiver has come round, and would then look as if it were yet to be taken.
  std::ranges::fill(pieces_, Piece{});
  for (const PointToPoint& o : operations) progress_.push_back({&o, o.count * sizeOf(o.type)});
  readDirectly_ = false;
  int attempt = 0;
  for (;;) {
    const std::uint32_t seen = waiter_.rings();
    bool moved = false, finished = true;
    int suspect = rank_, unfinished = 0;
    for (std::size_t i = 0; i < progress_.size(); ++i) {
      Progress& p = progress_[i];
      if (p.finished) continue;
      // One at a time for each peer and direction: later ones wait for the first unfinished.
      const bool blocked = std::any_of(
          progress_.begin(), progress_.begin() + static_cast<std::ptrdiff_t>(i), [&](const Progress& earlier) {
            return !earlier.finished && !earlier.posted && earlier.operation->isSend == p.operation->isSend &&
                   earlier.operation->peer == p.operation->peer;
          });
      if (!blocked) moved = (p.operation->isSend ? advanceSend(p) : advanceReceive(p)) || moved;
      if (!p.finished) {
        finished = false;
        // In turn, so that a rank that died is found among any number of them.
        if (suspect == rank_ || unfinished++ == attempt % static_cast<int>(progress_.size()))
          suspect = p.operation->peer;
      }
    }
    if (finished) {
      if (readDirectly_) waiter_.checkAfterReading();
      return;
    }
    attempt = moved ? 0 : attempt + 1;
    if (!moved) waiter_.pauseForRing(attempt - 1, seen, suspect);
  }
}

bool PointToPointEngine::advanceSend(Progress& send) {
  const PointToPoint& operation = *send.operation;
  PairSend& mine = segment_.pairSend(rank_, operation.peer);
  const std::uint32_t posted = mine.posted.load(std::memory_order_relaxed);
  const std::uint32_t taken = segment_.pairReceive(operation.peer, rank_).taken.load(std::memory_order_acquire);
  if (send.posted) {
    // All messages of this operation are before `done`, kept as the count at which the last one is taken.
    send.finished = hasReached(taken, static_cast<std::uint32_t>(send.done));
    return send.finished;
  }
  if (posted - taken >= pairWindow) return false;
  PairMessage& message = mine.messages[posted % pairWindow];
  BufferExchange::Reference reference{};
  const bool direct = send.done == 0 && buffers_.refer(operation.buffer, send.bytes, reference);
  message.operation = encodeOperation(send.bytes, operation.type, direct);
  if (direct) {
    message.segment = reference.segment;
    message.address = reference.offset;
    message.bytes = send.bytes;
    send.done = send.bytes;
  } else {
    reclaimPieces();
    const auto piece = std::ranges::find(pieces_, -1, &Piece::receiver);
    if (piece == pieces_.end()) return false;
    const std::size_t offset = static_cast<std::size_t>(piece - pieces_.begin()) * pieceBytes_;
    const std::size_t bytes = std::min(pieceBytes_, send.bytes - send.done);
    if (bytes != 0)
      std::memcpy(segment_.pairBuffer(rank_) + offset, static_cast<const std::byte*>(operation.buffer) + send.done,
                  bytes);
    message.segment = 0;
    message.address = offset;
    message.bytes = bytes;
    *piece = {operation.peer, posted + 1};
    send.done += bytes;
  }
  mine.posted.store(posted + 1, std::memory_order_release);
  waiter_.ring(operation.peer);
  if (send.done == send.bytes) {
    send.posted = true;
    send.done = posted + 1;
  }
  return true;
}

bool PointToPointEngine::advanceReceive(Progress& receive) {
  const PointToPoint& operation = *receive.operation;
  PairReceive& mine = segment_.pairReceive(rank_, operation.peer);
  PairSend& theirs = segment_.pairSend(operation.peer, rank_);
  const std::uint32_t taken = mine.taken.load(std::memory_order_relaxed);
  if (theirs.posted.load(std::memory_order_acquire) == taken) return false;
  const PairMessage message = theirs.messages[taken % pairWindow];  // a copy: it is not to change behind the checks
  const bool direct = (message.operation & 1) != 0;
  if (message.operation >> 1 != encodeOperation(receive.bytes, operation.type, false) >> 1) {
    const auto type = static_cast<taccDataType_t>(message.operation >> 1 & 0x7f);
    fail(taccInvalidUsage, "rank {} receives {} {} from rank {}, which sends {} {}", waiter_.nameOf(rank_),
         operation.count, nameOf(operation.type), waiter_.nameOf(operation.peer),
         (message.operation >> 8) / sizeOf(type), nameOf(type));
  }
  const std::size_t room = segment_.geometry().pairBytes;
  const bool fits = direct ? receive.done == 0 && message.bytes == receive.bytes
                           : message.bytes <= receive.bytes - receive.done && message.bytes <= room &&
                                 message.address <= room - message.bytes;
  if (!fits)
    fail(taccInternalError, "rank {} sends {} bytes at {} to rank {}, which has {} of {}",
         waiter_.nameOf(operation.peer), message.bytes, message.address, waiter_.nameOf(rank_), receive.done,
         receive.bytes);
  const std::byte* from = direct ? buffers_.resolve(operation.peer, {message.segment, message.address}, message.bytes)
                                 : segment_.pairBuffer(operation.peer) + message.address;
  if (message.bytes != 0) std::memcpy(static_cast<std::byte*>(operation.buffer) + receive.done, from, message.bytes);
  readDirectly_ = readDirectly_ || direct;
  receive.done += message.bytes;
  mine.taken.store(taken + 1, std::memory_order_release);
  waiter_.ring(operation.peer);
  receive.finished = receive.done == receive.bytes;
  return true;
}

void PointToPointEngine::reclaimPieces() {
  for (Piece& piece : pieces_)
    if (piece.receiver >= 0 &&
        hasReached(segment_.pairReceive(piece.receiver, rank_).taken.load(std::memory_order_acquire), piece.takenWhen))
      piece.receiver = -1;
}

std::string PointToPointEngine::describe() const {
  for (const Progress& p : progress_)
    if (!p.finished)
      return fmt::format("{} of {} {} {} rank {}", p.operation->isSend ? "send" : "receive", p.operation->count,
                         nameOf(p.operation->type), p.operation->isSend ? "to" : "from",
                         waiter_.nameOf(p.operation->peer));
  return "no operation";
}

}  // namespace tacc
