// Into how many tasks work is cut, so that workers end at about the same time.
#pragma once

#include <algorithm>
#include <cstddef>

namespace tacc::conv {

/// `pieces` equal pieces of work, each of which can be cut two ways: into parts of `rows` equal rows, and those into
/// parts of `columns` equal columns. Both are at least 1, as are the least parts.
struct DivisibleWork {
  std::size_t pieces;
  std::size_t rows, columns = 1;
  std::size_t leastRowParts = 1;  // wanted for other reasons; no more than `rows`
};

struct TaskCut {
  std::size_t rowParts, columnParts = 1;
};

/// What the busiest of `workers` computes with equally many tasks for each, at most: as a multiple of an equal share of
/// the work.
inline double spanOf(const DivisibleWork& work, const TaskCut& cut, std::size_t workers) {
  const auto ceil = [](std::size_t count, std::size_t parts) { return (count + parts - 1) / parts; };
  const double share = double(work.pieces * work.rows * work.columns) / double(workers);
  const double largest = double(ceil(work.rows, cut.rowParts) * ceil(work.columns, cut.columnParts));
  return double(ceil(work.pieces * cut.rowParts * cut.columnParts, workers)) * largest / share;
}

/// The cut with which the busiest of `workers` ends first; of equal ones that with fewer parts of rows. Few tasks are
/// handed out faster than many; some for each worker leave others something to take over when the system stops one for
/// a while.
inline TaskCut balancedCut(const DivisibleWork& work, std::size_t workers) {
  TaskCut best{work.leastRowParts, 1};
  if (workers <= 1) return best;
  constexpr double tasksWanted = 4, costOfTask = 0.004, costOfMissing = 0.02;  // of a worker's share
  const auto costOf = [&](const TaskCut& cut) {
    const double tasks = double(work.pieces * cut.rowParts * cut.columnParts) / double(workers);
    return spanOf(work, cut, workers) + costOfTask * tasks + costOfMissing * std::max(0.0, tasksWanted - tasks);
  };
  double least = costOf(best);
  // More parts than these only add tasks.
  const std::size_t most = std::max<std::size_t>(1, 16 * workers / work.pieces);
  const std::size_t mostRowParts = std::clamp(most, work.leastRowParts, work.rows);
  for (std::size_t rowParts = work.leastRowParts; rowParts <= mostRowParts; ++rowParts) {
    for (std::size_t columnParts = 1; columnParts <= std::min(most, work.columns); ++columnParts) {
      if (rowParts > work.leastRowParts && rowParts * columnParts > most) break;
      const double cost = costOf({rowParts, columnParts});
      if (cost >= least) continue;
      least = cost;
      best = {rowParts, columnParts};
    }
  }
  return best;
}

}  // namespace tacc::conv
