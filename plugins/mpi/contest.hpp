// Who serves a kind of call on a communicator: tacc, or MPI where that is faster. Measured once, agreed by all ranks.
#pragma once

#include <mpi.h>

#include <array>
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
  Turn next(Function function, std::size_t bytes, std::uint32_t after) noexcept;
  void decide(const Outcome& outcome) noexcept;

 private:
  static constexpr std::size_t functions = static_cast<std::size_t>(Function::Barrier) + 1;
  static constexpr std::size_t sizes = 23;  // below 4 MiB; where more is moved tacc is the faster one, and trying costs
  static constexpr std::uint32_t isDecided = 1U << 31, isMpis = 1U << 30;
  static std::optional<std::size_t> kindOf(Function function, std::size_t bytes) noexcept;

  std::array<std::uint32_t, functions * sizes> kinds_{};  // calls so far; then who serves them
};

/// Runs some calls of either on memory of its own, in turns, with rank 0 as the root. Collective over `communicator`,
/// which has joined. Sets `outcome` on success; an error is tacc's own. Where it would take much
/// memory, or a rank has none, tacc wins unmeasured.
taccResult_t holdContest(Function function, std::size_t bytes, const Communicator& communicator, Outcome& outcome);

}  // namespace tacc::mpi
