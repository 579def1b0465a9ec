// Alltoall over groups, such as the ranks of a host: fewer messages between groups, each longer.
//
//   G groups of L ranks; rank (g, i) is the i-th of group g. What (g, i) has for (h, j) goes by way of (g, j), which
//   has the same place in its group as the one that it is for:
//     round 0   (g, i) hands (g, j) its blocks for the j-th ranks of all groups, G messages of one block
//     round 1   (g, j) has then, from all ranks of its group, what the j-th rank of every group is to get: they land
//               beside one another, in order of that group and then of the rank that they come from
//     round 2   (g, j) sends (h, j) the L blocks from its group: one message
//     round 3   which land as they have to lie in the output
//
//   P = 4, L = 2, rank 0 (ab: the block of rank a for rank b):
//     round 0   01, 03 -> 1                    02 -> scratch
//     round 1   from 1: 10 -> output,          12 -> scratch
//     round 2   02 12 -> 2
//     round 3   from 2: 20 30 -> output
//
//   Messages of a rank: G (L-1) inside its group, G-1 to others, where a direct exchange has (G-1) L to others. Blocks:
//   G (L-1) + (G-1) L. For short blocks: long ones would only be copied once more.
//
//   J. L. Träff, A. Rougier: MPI collectives and datatypes for hierarchical all-to-all communication. EuroMPI 2014.
#include "algorithms/hierarchical_alltoall.hpp"

#include <algorithm>

namespace tacc {
namespace {

int sizeOfGroup(const PlanRequest& request) { return request.groups.front().front(); }

}  // namespace

bool servesHierarchicalAllToAll(const PlanRequest& request) {
  if (request.groups.empty() || !groupsFit(request)) return false;
  const int size = sizeOfGroup(request);
  return size > 1 && size < request.ranks &&
         std::ranges::all_of(request.groups.front(), [&](int other) { return other == size; });
}

void writeHierarchicalAllToAll(const PlanRequest& request, PlanWriter& writer) {
  const int size = sizeOfGroup(request), groups = request.ranks / size;
  const int r = writer.rank(), g = r / size, i = r % size;
  writer.needScratch(request.ranks);
  for (int h = 0; h < groups; ++h) {
    const int block = h * size + i;
    writer.step(0, 0, 1, {input(block)}, {h == g ? output(block) : scratch(block)});
  }
  for (int shift = 1; shift < size; ++shift) {
    const int j = wrap(i + shift, size);
    for (int h = 0; h < groups; ++h) writer.step(0, 0, 1, {input(h * size + j)}, {peer(g * size + j)});
  }
  for (int shift = 1; shift < size; ++shift) {
    const int from = wrap(i - shift, size);
    for (int h = 0; h < groups; ++h) {
      const int block = h * size + from;
      writer.step(1, 0, 1, {peer(g * size + from)}, {h == g ? output(block) : scratch(block)});
    }
  }
  for (int shift = 1; shift < groups; ++shift) {
    const int h = wrap(g + shift, groups);
    writer.step(2, 0, size, {scratch(h * size)}, {peer(h * size + i)});
  }
  for (int shift = 1; shift < groups; ++shift) {
    const int h = wrap(g - shift, groups);
    writer.step(3, 0, size, {peer(h * size + i)}, {output(h * size)});
  }
}

Exchanges exchangesOfHierarchicalAllToAll(const PlanRequest& request) {
  const int size = sizeOfGroup(request), groups = request.ranks / size;
  EveryToEvery inside, between;
  inside.oneByOne = between.oneByOne = true;
  inside.groupSize = between.groupSize = size;
  inside.blocks = inside.messages = groups;
  between.isBetweenGroups = true;
  between.blocks = size;
  return {1, {Copy{groups}, inside, between}};
}

}  // namespace tacc
