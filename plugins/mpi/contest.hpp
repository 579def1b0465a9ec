// Who serves a kind of call on a communicator: tacc, or MPI where that is faster. Measured once, agreed by all ranks.
#pragma once

#include <mpi.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "report.hpp"
#include "tacc/tacc.h"

namespace tacc::mpi {

struct Communicator;

/// The contests of one communicator. What they are asked is the same on all its ranks: calls are of one kind if the
/// function is the same and the bytes have the same highest bit. Of a function whose counts are not known to all ranks
/// none knows how much all move: after some calls the ranks agree on what they usually move, and who serves calls of
/// that many bytes serves the next ones, until they look again.
class Contests {
 public:
  enum class Turn : std::uint8_t { tacc, mpi, contest };

  /// Whether a rank knows its own counts only. Of an allgather or a reduce-scatter with counts each knows those of all.
  static constexpr bool hasOwnCounts(Function function) noexcept;

  /// Who serves the next call. `bytes`: with own counts, this rank's mean block. `contest`: it is time to measure, then
  /// tell decide(). `after`: how many calls of a kind tacc serves first; 0: all.
  Turn next(Function function, std::size_t bytes, std::uint32_t after) noexcept {
    if (after == 0) return Turn::tacc;
    if (hasOwnCounts(function)) return nextOfOwnCounts(function, bytes, after);
    const std::optional<std::size_t> kind = kindOf(function, bytes);
    if (!kind) return Turn::tacc;
    std::uint32_t& calls = kinds_[*kind];
    if ((calls & isDecided) != 0) return (calls & isMpis) != 0 ? Turn::mpi : Turn::tacc;
    return ++calls > after ? Turn::contest : Turn::tacc;
  }
  /// What outcome.bytes is of is decided; with own counts until it is time to look again.
  void decide(const Outcome& outcome) noexcept;

  /// With own counts: the mean block of this rank's calls since the last decision.
  std::size_t usualBytes(Function function) const noexcept;
  /// Who serves calls of so many bytes from now on, if that was decided before.
  std::optional<Turn> decidedFor(Function function, std::size_t bytes) noexcept;
  /// Whether calls of `bytes` of a block, or of a whole vector, are measured at all. Where more is moved tacc is the
  /// faster one, and trying costs.
  static bool isMeasured(std::size_t bytes) noexcept { return static_cast<std::size_t>(std::bit_width(bytes)) < sizes; }

 private:
  static constexpr std::size_t functions = static_cast<std::size_t>(Function::Barrier) + 1;
  static constexpr std::size_t sizes = 23;  // below 4 MiB

  struct OwnCounts {
    std::uint64_t calls = 0, bytes = 0;  // since the last decision
    std::uint64_t until = 0;             // calls until it is looked at; 0: nothing was called
    Turn turn = Turn::tacc;
    std::array<Turn, sizes> decided{};  // by the width of bytes; `contest`: not yet
    OwnCounts() { decided.fill(Turn::contest); }
  };

  static constexpr std::uint32_t isDecided = 1U << 31, isMpis = 1U << 30;
  static std::optional<std::size_t> kindOf(Function function, std::size_t bytes) noexcept {
    if (!isMeasured(bytes)) return std::nullopt;
    return static_cast<std::size_t>(function) * sizes + static_cast<std::size_t>(std::bit_width(bytes));
  }
  Turn& decidedOf(OwnCounts& own, std::size_t bytes) noexcept {
    return own.decided[static_cast<std::size_t>(std::bit_width(bytes))];
  }
  Turn nextOfOwnCounts(Function function, std::size_t bytes, std::uint32_t after) noexcept {
    OwnCounts& own = ownCounts_[static_cast<std::size_t>(function)];
    if (own.until == 0) own.until = after;
    if (own.calls == own.until) return Turn::contest;
    ++own.calls;
    own.bytes += bytes;
    return own.turn;
  }
  void lookAgainLater(OwnCounts& own) noexcept;

  std::array<std::uint32_t, functions * sizes> kinds_{};  // calls so far; then who serves them
  std::array<OwnCounts, functions> ownCounts_{};
};

constexpr bool Contests::hasOwnCounts(Function function) noexcept {
  switch (function) {
    case Function::Gatherv:
    case Function::Scatterv:
    case Function::Alltoallv:
    case Function::Gatherv_c:
    case Function::Scatterv_c:
    case Function::Alltoallv_c:
      return true;
    default:
      return false;
  }
}

/// Sets `bytes` to the most that a rank gave. Collective.
taccResult_t agreeOnMost(std::size_t& bytes, const Communicator& communicator);

/// A call of the program that does the same however often it is made.
struct Repeated {
  std::function<taccResult_t()> tacc;
  std::function<void()> mpi;
};

/// Runs some calls of either, in turns: of `repeated`, or on memory of its own with rank 0 as the root, where that is
/// null, on all ranks alike. Collective over `communicator`,
/// which has joined. Sets `outcome` on success; an error is tacc's own. Where it would take much
/// memory, or a rank has none, tacc wins unmeasured.
taccResult_t holdContest(Function function, std::size_t bytes, const Communicator& communicator,
                         const Repeated* repeated, Outcome& outcome);

}  // namespace tacc::mpi
