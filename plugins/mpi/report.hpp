// What happened to the calls of this rank: counted, and told as a table at MPI_Finalize (TACC_MPI=report).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "functions.h"

namespace tacc::mpi {

#define TACC_MPI_MEMBER(name) name,
enum class Function : int {
  TACC_MPI_COLLECTIVES(TACC_MPI_MEMBER) TACC_MPI_COLLECTIVES_WITH_REQUEST(TACC_MPI_MEMBER) count
};
#undef TACC_MPI_MEMBER

/// What a contest (contest.hpp) found, the same on all ranks.
struct Outcome {
  Function function = Function::count;
  std::size_t bytes = 0;
  double tacc = 0, mpi = 0;      // seconds of one call on the slowest rank; 0: nothing was measured
  bool isMpiFaster = false;      // it has such calls from now on
  bool isMpiSlowInMean = false;  // some calls of it take so long that they decide
  double cost = 0;               // seconds that the contest took
};

/// Why a call went to MPI.
enum class Passed : int {
  none = -1,  // it did not
  off,
  alone,
  intercommunicator,
  type,
  operation,
  arguments,
  noCommunicator,
  nested,
  small,
  notJoined,
  mpiTransport,
  slower,
  unknown,
  otherWorld,
  wrapped,
  first,
  count
};

class Report {
 public:
  /// Whether several threads may call at once, and whether anybody will ask for text().
  void open(bool hasThreads, bool isWanted) noexcept {
    hasThreads_ = hasThreads;
    isWanted_ = isWanted;
  }

  /// Thread safe, as far as open() was told.
  [[gnu::always_inline]] void countTaken(Function function, std::size_t bytes) noexcept {
    if (isWanted_) [[unlikely]]
      count(function, bytes);
  }
  [[gnu::always_inline]] void countPassed(Function function, Passed why) noexcept {
    if (isWanted_) [[unlikely]]
      count(function, why);
  }

  /// Adds a line, or rewrites the one that an earlier contest of the same calls has. Returns which one it is.
  std::size_t tell(const Outcome& outcome, std::optional<std::size_t> line) {
    const std::lock_guard lock(mutex_);
    if (line)
      outcomes_[*line] = outcome;
    else
      outcomes_.push_back(outcome);
    return line.value_or(outcomes_.size() - 1);
  }

  /// The table, a line for each function that was called. `title` is its first line.
  std::string text(const std::string& title);

 private:
  struct Row {
    std::atomic<std::uint64_t> taken{0}, bytes{0};
    std::array<std::atomic<std::uint64_t>, static_cast<std::size_t>(Passed::count)> passed{};
  };
  void count(Function function, std::size_t bytes) noexcept;
  void count(Function function, Passed why) noexcept;
  void add(std::atomic<std::uint64_t>& number, std::uint64_t more) const noexcept;
  Row& rowOf(Function function) noexcept { return rows_[static_cast<std::size_t>(function)]; }

  bool hasThreads_ = true, isWanted_ = true;
  std::array<Row, static_cast<std::size_t>(Function::count)> rows_{};
  std::mutex mutex_;
  std::vector<Outcome> outcomes_;
};

}  // namespace tacc::mpi
