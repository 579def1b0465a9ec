// What the algorithms share in writing the steps of a rank.
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "algorithms/local_plan.hpp"

namespace tacc {

/// What the result of a step that adds up holds.
enum class Sum : bool {
  partial,
  complete,  // the contributions of all ranks, in every block
};

/// Takes the steps of one rank, in any order of rounds; in order they take the least memory.
class PlanWriter {
 public:
  PlanWriter(const PlanRequest& request, std::string_view algorithm, int rank);

  int rank() const noexcept { return plan_.rank; }

  /// Into how many blocks a split vector is cut; 1 unless it is said. The same on all ranks.
  void cutInto(int blocks) noexcept { plan_.blocks = blocks; }

  /// Adds a step over `blockCount` blocks. `block` is the first one in a split partition and is ignored in a stack.
  void step(int round, int block, int blockCount, std::vector<Operand> sources, std::vector<Operand> destinations,
            Sum sum = Sum::partial);

  /// The rank needs at least this number of scratch blocks.
  void needScratch(int blocks);

  /// What was written, in order of rounds; steps of a round keep the order in which they were added. Ends the writer.
  LocalPlan finish();

 private:
  LocalPlan plan_;
  bool isSplit_;
};

/// `value` modulo p, in [0, p), also for negative values.
constexpr int wrap(int value, int p) noexcept { return ((value % p) + p) % p; }

constexpr bool isPowerOfTwo(int value) noexcept { return value > 0 && (value & (value - 1)) == 0; }

/// The distances of Swing and Bine: 1, -1, 3, -5, 11, ...: (1 - (-2)^(step+1)) / 3.
constexpr int alternatingDistance(int step) noexcept {
  const int power = 1 << (step + 1);
  return (1 - (step % 2 == 0 ? -power : power)) / 3;
}

constexpr bool isOneOf(Collective collective, std::initializer_list<Collective> list) noexcept {
  for (const Collective c : list) {
    if (c == collective) return true;
  }
  return false;
}

/// All ranks but `rank` as peers, beginning with the next one, so that ranks do not all turn to rank 0 first.
std::vector<Operand> othersThan(int rank, int p);

/// Every rank's contribution in rank order: messages from the others, `own` in the place of `rank`.
std::vector<Operand> allInRankOrder(int rank, int p, Operand own);

/// Two sources, that of the lower rank first: both ranks of an exchange then compute the same bits.
std::vector<Operand> lowerFirst(int rankA, Operand a, int rankB, Operand b);

}  // namespace tacc
