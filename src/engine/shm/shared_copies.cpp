#include "engine/shm/shared_copies.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "core/error.hpp"
#include "core/stopwatch.hpp"
#include "engine/partition.hpp"
#include "transports/shm/cma.hpp"

namespace tacc {
namespace {

constexpr std::size_t piecesOfCopy = 16, leastPiece = std::size_t{8} << 10, mostPiece = std::size_t{256} << 10;
constexpr std::size_t mostPieces = UINT16_MAX;
constexpr std::size_t leastClaim = std::size_t{64} << 10;  // less is not worth a call of the kernel
constexpr std::size_t mostAtOnce = std::size_t{1} << 20;   // by the owner, which has other things to look after
constexpr double patienceSeconds = 2;                      // for a rank that was stopped as it wrote

/// The word of OpenCopy.
struct PieceClaims {
  std::uint32_t number, first, end;

  static PieceClaims of(std::uint64_t word) noexcept {
    return {static_cast<std::uint32_t>(word >> 32), static_cast<std::uint32_t>(word >> 16 & UINT16_MAX),
            static_cast<std::uint32_t>(word & UINT16_MAX)};
  }
  std::uint64_t word() const noexcept { return std::uint64_t{number} << 32 | first << 16 | end; }
  bool areOver() const noexcept { return first >= end; }
  /// How many one end takes at once: half of the rest, so that two that come together take few calls of the kernel.
  std::uint32_t share(std::size_t pieceBytes) const noexcept {
    const auto least = static_cast<std::uint32_t>(leastClaim / std::max<std::size_t>(1, pieceBytes));
    return std::min(end - first, std::max((end - first + 1) / 2, least));
  }
};

}  // namespace

SharedCopies::SharedCopies(const NodeSegment& segment, int rank, Waiter& waiter, const RemoteMemory& memory)
    : segment_(segment), rank_(rank), waiter_(waiter), memory_(memory) {}

void SharedCopies::open(Collective collective, int source, const std::byte* from, std::byte* to,
                        std::size_t bytes) noexcept {
  const std::size_t even = std::clamp(bytes / piecesOfCopy, leastPiece, mostPiece);
  const std::size_t piece = roundUp(std::max(even, bytes / mostPieces + 1), cacheLine);
  OpenCopy& copy = segment_.openCopy(rank_, count_);
  Opened& opened = opened_[static_cast<std::size_t>(count_++)];
  opened = {.source = source,
            .from = from,
            .to = to,
            .bytes = bytes,
            .pieceBytes = piece,
            .number = ++number_,
            .pieces = static_cast<std::uint32_t>((bytes + piece - 1) / piece),
            .writtenBefore = copy.written.load(std::memory_order_relaxed),
            .habit = &habits_.of(collective, bytes)};
  copy.source.store(static_cast<std::uint32_t>(source), std::memory_order_relaxed);
  copy.from.store(reinterpret_cast<std::uintptr_t>(from), std::memory_order_relaxed);
  copy.to.store(reinterpret_cast<std::uintptr_t>(to), std::memory_order_relaxed);
  copy.bytes.store(bytes, std::memory_order_relaxed);
  copy.pieceBytes.store(piece, std::memory_order_relaxed);
  copy.claims.store(PieceClaims{opened.number, 0, opened.pieces}.word(), std::memory_order_release);
}

void SharedCopies::read(const Opened& opened, std::uint32_t first, std::uint32_t end) {
  const std::size_t begin = first * opened.pieceBytes;
  memory_.read(opened.source, opened.to + begin, opened.from + begin,
               std::min(opened.bytes, end * opened.pieceBytes) - begin);
}

void SharedCopies::take(OpenCopy& copy, Opened& opened) {
  for (;;) {
    std::uint64_t word = copy.claims.load(std::memory_order_acquire);
    const PieceClaims claims = PieceClaims::of(word);
    // The other end may have written anything.
    if (claims.number != opened.number || claims.first != opened.taken || claims.end > opened.pieces ||
        claims.end < claims.first)
      fail(taccInternalError, "rank {} claims pieces of a copy that there are not", waiter_.nameOf(opened.source));
    if (claims.areOver()) return;
    PieceClaims next = claims;
    const bool isFirst = claims.first == 0;
    next.first +=
        isFirst ? std::min(claims.end, opened.habit->firstClaim(opened.pieces)) : claims.share(opened.pieceBytes);
    if (!copy.claims.compare_exchange_weak(word, next.word(), std::memory_order_acq_rel)) continue;
    opened.taken = next.first;
    if (isFirst) opened.claimed = next.first;
    read(opened, claims.first, next.first);
  }
}

void SharedCopies::finish() {
  for (int index = 0; index < count_; ++index)
    take(segment_.openCopy(rank_, index), opened_[static_cast<std::size_t>(index)]);
  for (int index = 0; index < count_; ++index) {
    const Opened& opened = opened_[static_cast<std::size_t>(index)];
    opened.habit->record(opened.pieces, opened.claimed, opened.others());
    if (opened.others() == 0) continue;
    OpenCopy& copy = segment_.openCopy(rank_, index);
    waiter_.wait(copy.written, opened.writtenBefore + opened.others(), opened.source);
    if (copy.refused.load(std::memory_order_relaxed) == opened.number) read(opened, opened.taken, opened.pieces);
  }
  count_ = 0;
}

std::string SharedCopies::abandon() {
  std::array<std::uint32_t, openCopies> claimed{};  // by the others
  for (int index = 0; index < count_; ++index) {
    const Opened& opened = opened_[static_cast<std::size_t>(index)];
    const std::uint64_t last = segment_.openCopy(rank_, index).claims.exchange(0, std::memory_order_acq_rel);
    claimed[static_cast<std::size_t>(index)] = opened.pieces - std::min(PieceClaims::of(last).end, opened.pieces);
  }
  const auto isWriting = [&](int index) {
    const Opened& opened = opened_[static_cast<std::size_t>(index)];
    return !Waiter::sees(segment_.openCopy(rank_, index).written,
                         opened.writtenBefore + claimed[static_cast<std::size_t>(index)]) &&
           waiter_.isThere(opened.source);
  };
  const Stopwatch watch;
  std::string open;
  for (int index = 0; index < count_; ++index) {
    while (isWriting(index) && watch.seconds() < patienceSeconds)
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    if (!isWriting(index)) continue;
    const Opened& opened = opened_[static_cast<std::size_t>(index)];
    open += fmt::format("{}{} bytes at {}, of which rank {} was writing a part", open.empty() ? "" : "; ", opened.bytes,
                        static_cast<const void*>(opened.to), waiter_.nameOf(opened.source));
  }
  count_ = 0;
  return open;
}

bool SharedCopies::help(int reader, const std::array<OwnMemory, 2>& memory) {
  if (!mayWrite_ || !mayWriteRemote()) return false;
  for (int index = 0; index < openCopies; ++index) {
    OpenCopy& copy = segment_.openCopy(reader, index);
    std::uint64_t word = copy.claims.load(std::memory_order_acquire);
    const PieceClaims claims = PieceClaims::of(word);
    if (claims.areOver() || copy.source.load(std::memory_order_relaxed) != static_cast<std::uint32_t>(rank_)) continue;
    const std::size_t bytes = copy.bytes.load(std::memory_order_relaxed);
    const std::size_t piece = copy.pieceBytes.load(std::memory_order_relaxed);
    const auto* const from = reinterpret_cast<const std::byte*>(copy.from.load(std::memory_order_relaxed));
    auto* const to = reinterpret_cast<std::byte*>(copy.to.load(std::memory_order_relaxed));
    const auto most =
        static_cast<std::uint32_t>(std::max<std::size_t>(1, mostAtOnce / std::max<std::size_t>(1, piece)));
    PieceClaims next = claims;
    next.end -= std::min(claims.share(piece), most);
    // The number says that all these are of one copy.
    if (!copy.claims.compare_exchange_strong(word, next.word(), std::memory_order_acq_rel)) return true;
    const bool isOwn = std::ranges::any_of(memory, [&](const OwnMemory& own) { return own.contains(from, bytes); });
    const std::size_t begin = next.end * piece;
    const bool isRight = isOwn && piece <= std::max(bytes, leastPiece) + cacheLine && begin < bytes;
    if (isRight && waiter_.isThere(reader))
      mayWrite_ = memory_.tryWrite(reader, to + begin, from + begin, std::min(bytes, claims.end * piece) - begin);
    if (!isRight || !mayWrite_) copy.refused.store(claims.number, std::memory_order_relaxed);
    waiter_.publish(copy.written, copy.written.load(std::memory_order_relaxed) + claims.end - next.end);
    if (!isRight)
      fail(taccInternalError, "rank {} asks rank {} for {} bytes that are not of this call", waiter_.nameOf(reader),
           waiter_.nameOf(rank_), bytes);
    return true;
  }
  return false;
}

}  // namespace tacc
