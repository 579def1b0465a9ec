// A plan: one collective, for one number of ranks and one root, as data. Algorithms write it, the verifier proves it,
// the engine runs it, people read it. No transport, element type or byte count appears in it.
//
// Data and blocks
//   allreduce, broadcast, reduce, scan, exscan (Partition::split): all buffers are one vector of `count` elements, cut
//   into
//     plan.blocks = B blocks; block b is elements [floor(b*count/B), floor((b+1)*count/B)), so blocks may be empty.
//   allgather, reduce-scatter, alltoall, gather, scatter (Partition::stack): every block is `count` elements;
//     buffers are stacks of blocks: allgather, gather: input 1, output p (gather: output on root only); reduce-scatter,
//     scatter: input p (scatter: on root only), output 1; alltoall: input p, output p.
//     Blocks of a call may have unequal lengths (block_names.hpp): a plan that says of every step which blocks it
//     handles serves that call too, as it is.
//   Scratch has plan.scratchBlocks blocks of the same kind (for split: block index b has the size of block b).
//
// Steps and rounds
//   There is one kind of step: every destination = reduction of all sources, over `blockCount` consecutive blocks.
//     send             {input b}            -> {to peer}
//     receive          {from peer}          -> {output b}
//     receive, reduce  {input b, from peer} -> {output b}
//     forward as well  {input b, from peer} -> {output b, to next}
//     copy             {input b}            -> {output b}
//   Sources are reduced in the order in which they are listed. One source only: a copy.
//   The steps of a round run together. A message sent in round i can be received in rounds > i only, and within a rank
//   steps of later rounds see the memory effects of earlier rounds. Steps of one round of one rank must not conflict
//   (touch the same memory block with a write among them), except that one step may read what it itself overwrites
//   exactly.
//   The k-th message from rank a to rank b (in order of rounds, then of steps) is met by the k-th receive at b from a;
//   both name the same number of blocks, and in a split partition the same blocks.
//   A rank may list several peers as destinations of one step: the same data goes to each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/collective.hpp"

namespace tacc {

/// What a plan is asked for.
struct PlanRequest {
  Collective collective = Collective::allReduce;
  int ranks = 1;
  int root = 0;  // of rooted collectives
  /// What is known of where the ranks are; most algorithms do not look. Nested groups of consecutive ranks, the
  /// innermost level first: the sizes of all groups of a level, in ranks. 8 ranks on 4 hosts at 2 switches: {{2, 2, 2,
  /// 2}, {4, 4}}.
  std::vector<std::vector<int>> groups = {};
  /// Sides of a torus whose places the ranks fill in order, the last one running fastest.
  std::vector<int> dimensions = {};
  /// Ranks whose own links carry much less than most ranks' do, in ascending order.
  std::vector<int> narrow = {};
  bool hasLayout() const noexcept { return !groups.empty() || !dimensions.empty() || !narrow.empty(); }
  friend bool operator==(const PlanRequest&, const PlanRequest&) = default;
};

/// `levels`: how many groups of one level make one of the next, innermost first; {4, 2} of 8 ranks or more: groups of
/// 4, and groups of 2 such groups. They must divide the ranks.
std::vector<std::vector<int>> equalGroups(int ranks, const std::vector<int>& levels);
/// Whether the groups of every level cover the ranks and are unions of groups of the level inside.
bool groupsFit(const PlanRequest& request) noexcept;
/// Whether the torus has as many places as there are ranks.
bool dimensionsFit(const PlanRequest& request) noexcept;
/// Whether the narrow ranks are ranks, in ascending order.
bool narrowFit(const PlanRequest& request) noexcept;

struct Operand {
  enum class Kind : std::uint8_t { input, output, scratch, peer };
  Kind kind;
  std::int32_t index;  // first block of the buffer, or the peer's rank
  friend bool operator==(const Operand&, const Operand&) = default;
};
constexpr Operand input(int block) noexcept { return {Operand::Kind::input, block}; }
constexpr Operand output(int block) noexcept { return {Operand::Kind::output, block}; }
constexpr Operand scratch(int block) noexcept { return {Operand::Kind::scratch, block}; }
constexpr Operand peer(int rank) noexcept { return {Operand::Kind::peer, rank}; }

struct Step {
  std::int32_t round;
  std::int32_t block;       // split: first block, the same for every operand; stack: of no meaning, 0
  std::int32_t blockCount;  // >= 1
  std::vector<Operand> sources;
  std::vector<Operand> destinations;
  /// A reduction whose result, in every block, holds the contributions of all ranks: an average is divided here.
  bool completes = false;
  friend bool operator==(const Step&, const Step&) = default;
};

/// What one rank does. Steps are in order of rounds.
struct RankPlan {
  std::vector<Step> steps;
  friend bool operator==(const RankPlan&, const RankPlan&) = default;
};

/// All ranks together.
struct Plan {
  PlanRequest request;
  std::string algorithm;
  int blocks = 1;         // split: blocks of the vector; stack: 1
  int scratchBlocks = 0;  // per rank
  int rounds = 0;         // 1 + the last round of any rank
  std::vector<RankPlan> ranks;
  friend bool operator==(const Plan&, const Plan&) = default;
};

/// Blocks of the user's buffers on `rank` in a plan of `blocks` blocks; 0 where the collective does not use that
/// buffer there.
int inputBlocksOf(const PlanRequest& request, int blocks, int rank) noexcept;
int outputBlocksOf(const PlanRequest& request, int blocks, int rank) noexcept;
inline int inputBlocksOf(const Plan& plan, int rank) noexcept { return inputBlocksOf(plan.request, plan.blocks, rank); }
inline int outputBlocksOf(const Plan& plan, int rank) noexcept {
  return outputBlocksOf(plan.request, plan.blocks, rank);
}
/// In place: the output block that is the same memory as `inputBlock` on `rank`; -1: none.
int inPlaceOutputOf(const PlanRequest& request, int rank, int inputBlock) noexcept;
inline int inPlaceOutputOf(const Plan& plan, int rank, int inputBlock) noexcept {
  return inPlaceOutputOf(plan.request, rank, inputBlock);
}

}  // namespace tacc
