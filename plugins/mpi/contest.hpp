// Who serves a kind of call on a communicator: tacc, or MPI where that is faster. Measured once, agreed by all ranks.
#pragma once

#include <mpi.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "report.hpp"
#include "tacc/tacc.h"

namespace tacc::mpi {

struct Communicator;

/// The contests of one communicator. What they are asked is the same on all its ranks: calls are of one kind if the
/// function is the same and the bytes have the same highest bit.
class Contests {
 public:
  enum class Turn : std::uint8_t { tacc, mpi, contest };

  /// Who serves the next call. `contest`: it is time to measure, then tell decide(). `after`: so many calls of a kind
  /// are served by tacc first; 0: all are.
  Turn next(Function function, std::size_t bytes, std::uint32_t after) noexcept {
    const std::optional<std::size_t> kind = kindOf(function, bytes);
    if (after == 0 || !kind) return Turn::tacc;
    std::uint32_t& calls = kinds_[*kind];
    if ((calls & isDecided) != 0) return (calls & isMpis) != 0 ? Turn::mpi : Turn::tacc;
    return ++calls > after ? Turn::contest : Turn::tacc;
  }
  void decide(const Outcome& outcome) noexcept;

 private:
  static constexpr std::size_t functions = static_cast<std::size_t>(Function::Barrier) + 1;
  static constexpr std::size_t sizes = 23;  // below 4 MiB; where more is moved tacc is the faster one, and trying costs
  static constexpr std::uint32_t isDecided = 1U << 31, isMpis = 1U << 30;
  static constexpr bool hasOwnCounts(Function function) noexcept;
  static std::optional<std::size_t> kindOf(Function function, std::size_t bytes) noexcept {
    const auto size = static_cast<std::size_t>(std::bit_width(bytes));
    if (size >= sizes || hasOwnCounts(function)) return std::nullopt;
    return static_cast<std::size_t>(function) * sizes + size;
  }

  std::array<std::uint32_t, functions * sizes> kinds_{};  // calls so far; then who serves them
};

/// Counts of their own on each rank: what all know alike does not say how much is moved.
constexpr bool Contests::hasOwnCounts(Function function) noexcept {
  switch (function) {
    case Function::Allgatherv:
    case Function::Gatherv:
    case Function::Scatterv:
    case Function::Alltoallv:
    case Function::Reduce_scatter:
    case Function::Allgatherv_c:
    case Function::Gatherv_c:
    case Function::Scatterv_c:
    case Function::Alltoallv_c:
    case Function::Reduce_scatter_c:
      return true;
    default:
      return false;
  }
}

/// Runs some calls of either on memory of its own, in turns, with rank 0 as the root. Collective over `communicator`,
/// which has joined. Sets `outcome` on success; an error is tacc's own. Where it would take much
/// memory, or a rank has none, tacc wins unmeasured.
taccResult_t holdContest(Function function, std::size_t bytes, const Communicator& communicator, Outcome& outcome);

}  // namespace tacc::mpi
