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

constexpr std::size_t piecesOfCopy = 16, leastPiece = std::size_t{8} << 10, mostPiece = std::size_t{1} << 20;
constexpr std::size_t mostPieces = UINT16_MAX;
constexpr std::uint32_t noSource = UINT32_MAX;  // the source of a copy whose other end has failed
constexpr double patienceSeconds = 2;           // for a rank that was stopped as it wrote

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
  std::uint32_t share() const noexcept { return (end - first + 1) / 2; }
};

}  // namespace

SharedCopies::SharedCopies(const NodeSegment& segment, int rank, Waiter& waiter, const RemoteMemory& memory)
    : segment_(segment), rank_(rank), waiter_(waiter), memory_(memory) {}

bool SharedCopies::open(int source, const std::byte* from, std::byte* to, std::size_t bytes) noexcept {
  if (count_ == openCopies) return false;
  const std::size_t even = std::clamp(bytes / piecesOfCopy, leastPiece, mostPiece);
  const std::size_t piece = roundUp(std::max(even, bytes / mostPieces + 1), cacheLine);
  OpenCopy& copy = segment_.openCopy(rank_, count_);
  opened_[static_cast<std::size_t>(count_++)] = {source, from,
                                                 to,     bytes,
                                                 piece,  static_cast<std::uint32_t>((bytes + piece - 1) / piece),
                                                 0,      copy.written.load(std::memory_order_relaxed)};
  copy.source.store(static_cast<std::uint32_t>(source), std::memory_order_relaxed);
  copy.from.store(reinterpret_cast<std::uintptr_t>(from), std::memory_order_relaxed);
  copy.to.store(reinterpret_cast<std::uintptr_t>(to), std::memory_order_relaxed);
  copy.bytes.store(bytes, std::memory_order_relaxed);
  copy.pieceBytes.store(piece, std::memory_order_relaxed);
  const PieceClaims all{++number_, 0, opened_[static_cast<std::size_t>(count_ - 1)].pieces};
  copy.claims.store(all.word(), std::memory_order_release);
  return true;
}

void SharedCopies::take(OpenCopy& copy, Opened& opened) {
  for (;;) {
    std::uint64_t word = copy.claims.load(std::memory_order_acquire);
    const PieceClaims claims = PieceClaims::of(word);
    if (claims.areOver()) return;
    PieceClaims next = claims;
    next.first += claims.share();
    if (!copy.claims.compare_exchange_weak(word, next.word(), std::memory_order_acq_rel)) continue;
    const std::size_t begin = claims.first * opened.pieceBytes;
    memory_.read(opened.source, opened.to + begin, opened.from + begin,
                 std::min(opened.bytes, next.first * opened.pieceBytes) - begin);
    opened.taken += claims.share();
  }
}

void SharedCopies::finish() {
  for (int index = 0; index < count_; ++index)
    take(segment_.openCopy(rank_, index), opened_[static_cast<std::size_t>(index)]);
  for (int index = 0; index < count_; ++index) {
    const Opened& opened = opened_[static_cast<std::size_t>(index)];
    const std::uint32_t others = opened.pieces - opened.taken;
    if (others > 0) waiter_.wait(segment_.openCopy(rank_, index).written, opened.writtenBefore + others, opened.source);
  }
  count_ = 0;
}

std::string SharedCopies::abandon() {
  std::string open;
  const Stopwatch watch;
  for (int index = 0; index < count_; ++index) {
    const Opened& opened = opened_[static_cast<std::size_t>(index)];
    OpenCopy& copy = segment_.openCopy(rank_, index);
    const PieceClaims none{number_, 0, 0};
    const PieceClaims last = PieceClaims::of(copy.claims.exchange(none.word(), std::memory_order_acq_rel));
    const std::uint32_t others = opened.pieces - last.end;
    const auto isWriting = [&] {
      return !Waiter::sees(copy.written, opened.writtenBefore + others) &&
             copy.source.load(std::memory_order_acquire) != noSource && waiter_.isThere(opened.source);
    };
    while (isWriting() && watch.seconds() < patienceSeconds)
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    if (isWriting())
      open += fmt::format("{}{} bytes at {}, which rank {} was writing", open.empty() ? "" : "; ", opened.bytes,
                          static_cast<const void*>(opened.to), waiter_.nameOf(opened.source));
  }
  count_ = 0;
  return open;
}

bool SharedCopies::help(int reader, const std::array<OwnMemory, 2>& memory) {
  if (!mayWriteRemote()) return false;
  for (int index = 0; index < openCopies; ++index) {
    OpenCopy& copy = segment_.openCopy(reader, index);
    std::uint64_t word = copy.claims.load(std::memory_order_acquire);
    const PieceClaims claims = PieceClaims::of(word);
    if (claims.areOver() || copy.source.load(std::memory_order_relaxed) != static_cast<std::uint32_t>(rank_)) continue;
    const std::size_t bytes = copy.bytes.load(std::memory_order_relaxed);
    const std::size_t piece = copy.pieceBytes.load(std::memory_order_relaxed);
    const auto* const from = reinterpret_cast<const std::byte*>(copy.from.load(std::memory_order_relaxed));
    auto* const to = reinterpret_cast<std::byte*>(copy.to.load(std::memory_order_relaxed));
    PieceClaims next = claims;
    next.end -= claims.share();
    // The number says that all these are of one copy.
    if (!copy.claims.compare_exchange_strong(word, next.word(), std::memory_order_acq_rel)) return true;
    const bool isOwn = std::ranges::any_of(memory, [&](const OwnMemory& own) { return own.contains(from, bytes); });
    const std::size_t begin = next.end * piece;
    if (!isOwn || piece > std::max(bytes, leastPiece) + cacheLine || begin >= bytes)
      fail(taccInternalError, "rank {} asks rank {} for {} bytes that are not of this call", waiter_.nameOf(reader),
           waiter_.nameOf(rank_), bytes);
    try {
      memory_.write(reader, to + begin, from + begin, std::min(bytes, claims.end * piece) - begin);
    } catch (...) {
      copy.source.store(noSource, std::memory_order_release);
      throw;
    }
    waiter_.publish(copy.written, copy.written.load(std::memory_order_relaxed) + claims.share());
    return true;
  }
  return false;
}

}  // namespace tacc
