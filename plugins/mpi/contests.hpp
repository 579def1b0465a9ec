// Who serves a kind of call on a communicator: tacc, or MPI where that is faster.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "contest_rounds.hpp"
#include "report.hpp"

namespace tacc::mpi {

/// The form with `int` counts, which does the same. Ranks of one call may each use another form, as where a program
/// takes large counts only if it needs them: what it is called must not decide who serves it.
constexpr Function plainly(Function function) noexcept {
#define TACC_MPI_PLAIN(name) \
  case Function::name##_c:   \
    return Function::name;
  switch (function) {
    TACC_MPI_PLAIN(Allreduce)
    TACC_MPI_PLAIN(Bcast)
    TACC_MPI_PLAIN(Reduce)
    TACC_MPI_PLAIN(Allgather)
    TACC_MPI_PLAIN(Reduce_scatter_block)
    TACC_MPI_PLAIN(Alltoall)
    TACC_MPI_PLAIN(Gather)
    TACC_MPI_PLAIN(Scatter)
    TACC_MPI_PLAIN(Scan)
    TACC_MPI_PLAIN(Exscan)
    TACC_MPI_PLAIN(Allgatherv)
    TACC_MPI_PLAIN(Alltoallv)
    TACC_MPI_PLAIN(Gatherv)
    TACC_MPI_PLAIN(Scatterv)
    TACC_MPI_PLAIN(Reduce_scatter)
    default:
      return function;
  }
#undef TACC_MPI_PLAIN
}

/// The contests of one communicator. What they are asked is the same on all its ranks, of functions as plainly() has
/// them: calls are of one kind if the function is the same and the bytes have the same highest bit. Of a function whose
/// counts are not known to all ranks none knows how much all move: after some calls the ranks agree on what they
/// usually move, and who serves calls of that many bytes serves the next ones, until they look again.
///
/// Libraries become slower and quicker: other programs come and go, and messages of the program's. So from time to time
/// the ranks look whether the last contest is so long ago that another one costs little.
class Contests {
 public:
  enum class Turn : std::uint8_t { tacc, mpi, look };

  static constexpr std::size_t functions = static_cast<std::size_t>(Function::Barrier) + 1;  // as plainly() has them

  /// Calls of a kind.
  struct Calls {
    std::uint32_t left = 0;   // before the next look
    std::uint32_t until = 0;  // from the last look to the next
    Turn turn = Turn::tacc;
    bool isMet = false;

    /// nextAtOnce(), where tacc serves the call; otherwise nothing is counted.
    bool take() noexcept {
      if (left == 0 || turn != Turn::tacc) return false;
      --left;
      return true;
    }
  };

  /// Whether a rank knows its own counts only. Of an allgather or a reduce-scatter with counts each knows those of all.
  static constexpr bool hasOwnCounts(Function function) noexcept;

  /// Who serves the next call. `bytes`: with own counts, this rank's mean block. `look`: if wait() is over, hold a
  /// contest and tell decide(); else keep(). `after`: how many calls of a kind tacc serves first; 0: all.
  Turn next(Function function, std::size_t bytes, std::uint32_t after) noexcept {
    if (after == 0) return nextOfAll(function, bytes);
    if (hasOwnCounts(function)) {
      OwnCounts& own = ownCounts_[static_cast<std::size_t>(function)];
      if (own.until == 0) own.until = after;
    } else if (isMeasured(bytes)) {
      Calls& calls = calls_[kindOf(function, bytes)];
      if (!calls.isMet) calls = {after, after, Turn::tacc, true};
    }
    return nextAtOnce(function, bytes);
  }
  /// The same; `look` also where next() has not been asked before, and then nothing is counted.
  [[gnu::always_inline]] Turn nextAtOnce(Function function, std::size_t bytes) noexcept {
    if (hasOwnCounts(function)) {
      OwnCounts& own = ownCounts_[static_cast<std::size_t>(function)];
      if (own.calls == own.until) return Turn::look;
      ++own.calls;
      own.bytes += bytes;
      return own.turn;
    }
    if (!isMeasured(bytes)) return Turn::tacc;
    Calls& calls = calls_[kindOf(function, bytes)];
    if (calls.left == 0) return Turn::look;
    --calls.left;
    return calls.turn;
  }
  /// Those of which nextAtOnce() counts such a call. Null where none does: of others there is more to look at.
  Calls* callsOf(Function function, std::size_t bytes) noexcept {
    return hasOwnCounts(function) || !isMeasured(bytes) ? nullptr : &calls_[kindOf(function, bytes)];
  }
  /// With own counts: the mean block of this rank's calls since the last look.
  std::size_t usualBytes(Function function) const noexcept;

  /// Whether such calls had a contest before.
  bool isAgain(Function function, std::size_t bytes) const noexcept { return memory(function, bytes) != nullptr; }
  /// Seconds until the next contest of such calls, by this rank's clock, which shows `now`.
  double wait(Function function, std::size_t bytes, double now) const noexcept;
  /// Seconds since the ranks last looked at such calls.
  double sinceLook(Function function, std::size_t bytes, double now) const noexcept;
  /// Who goes on serving such calls until the next look, where they have to wait for a contest. `sinceLook`: the most
  /// that a rank has.
  Turn keep(Function function, std::size_t bytes, double now, double sinceLook) noexcept;
  /// What the contest that is due has of earlier ones.
  EarlierRounds before(Function function, std::size_t bytes) const noexcept;
  /// What outcome.bytes is of is decided. Returns until when another contest, of any calls, would cost much.
  double decide(const Outcome& outcome, double now);
  /// Of the last contest of such calls, if there was one: its line in the report.
  std::optional<std::size_t>& line(Function function, std::size_t bytes) {
    return memories_[kindOf(function, bytes)].line;
  }

  /// Whether calls of `bytes` of a block, or of a whole vector, are measured at all. Where more is moved, who is
  /// faster depends on the program's memory, on its pages and who wrote it last, which that of a contest does not show.
  static bool isMeasured(std::size_t bytes) noexcept { return static_cast<std::size_t>(std::bit_width(bytes)) < sizes; }

 private:
  static constexpr std::size_t sizes = 23;  // below 4 MiB

  struct OwnCounts {
    std::uint64_t calls = 0, bytes = 0;  // since the last look
    std::uint64_t until = 0;             // from the last look to the next; 0: nothing was called
    Turn turn = Turn::tacc;
  };

  /// What a contest leaves.
  struct Memory {
    Turn turn = Turn::tacc;
    double next = 0;    // by this rank's clock
    double looked = 0;  // the same
    double waited = 0;  // seconds between the two
    EarlierRounds before;
    std::optional<std::size_t> line;
  };

  /// Of what is measured.
  static std::size_t kindOf(Function function, std::size_t bytes) noexcept {
    return static_cast<std::size_t>(function) * sizes + static_cast<std::size_t>(std::bit_width(bytes));
  }
  /// Where nothing is ever measured: nextAtOnce() need not ask again for so many calls.
  Turn nextOfAll(Function function, std::size_t bytes) noexcept {
    if (hasOwnCounts(function))
      ownCounts_[static_cast<std::size_t>(function)].until = UINT64_MAX;
    else if (isMeasured(bytes))
      calls_[kindOf(function, bytes)] = {UINT32_MAX, UINT32_MAX, Turn::tacc, true};
    return Turn::tacc;
  }
  const Memory* memory(Function function, std::size_t bytes) const noexcept;
  /// Until the next look, after `calls`; those with own counts have a number of their own.
  void serve(Function function, std::size_t bytes, Turn turn, std::uint32_t calls) noexcept;

  std::array<Calls, functions * sizes> calls_{};
  std::array<OwnCounts, functions> ownCounts_{};
  std::unordered_map<std::size_t, Memory> memories_;  // of kinds
};

constexpr bool Contests::hasOwnCounts(Function function) noexcept {
  switch (function) {
    case Function::Gatherv:
    case Function::Scatterv:
    case Function::Alltoallv:
      return true;
    default:
      return false;
  }
}

}  // namespace tacc::mpi
