// The part of CostLoad that goes along trees.
#include <algorithm>

#include "selection/cost_load.hpp"

namespace tacc {
namespace {

std::size_t at(int index) noexcept { return static_cast<std::size_t>(index); }

}  // namespace

/// Children of one rank share its port evenly; ranks of the same depth (going up: height) send at the same time and
/// share the uplinks of their groups.
double CostLoad::treeTime(const TreeLoad& load, bool isDown) {
  const Tree& tree = *load.tree;
  const int places = tree.size();
  const double overhead = map_.machine().overhead;
  needPorts();
  std::vector<int> ranks(at(places));
  for (int place = 0; place < places; ++place) {
    const int rank = tree.rankOf(place);
    ranks[at(place)] = load.members.empty() ? rank : load.members[at(rank)];
  }
  const auto rankOf = [&](int place) { return ranks[at(place)]; };
  const auto bytesOf = [&](int place) { return load.isPerRank ? load.bytes * tree.node(place).size : load.bytes; };
  // By depth from the root (up: height from the leaves): those of one tier send (up: are sent) at about the same time.
  std::vector<std::vector<int>> order(at(tree.node(tree.root()).height + 1));
  for (int place = 0; place < places; ++place) {
    const TreeNode& node = tree.node(place);
    order[at(isDown ? node.depth : node.height)].push_back(place);
    const auto children = static_cast<double>(node.children.size());
    own_[at(rankOf(place))] += overhead * (children + (place == tree.root() ? 0 : 1)) +
                               map_.machine().gamma * load.combinedPerChild * children;
  }

  // Of the message on the edge above each place: where its ends meet, and how long its tier keeps its uplinks at work.
  std::vector<int> meets(at(places), 0);
  std::vector<double> shared(at(places), 0.0);
  std::vector<std::vector<double>> crossOut = groupOut_, crossIn = groupIn_;  // of one tier
  for (auto* cross : {&crossOut, &crossIn})
    for (std::vector<double>& groups : *cross) std::ranges::fill(groups, 0.0);
  std::vector<std::vector<double>> crossWire = wire_;  // of one tier
  for (std::vector<double>& wires : crossWire) std::ranges::fill(wires, 0.0);
  const auto forWires = [&](int child, const auto& visit) {
    const int parent = tree.node(child).parent, meet = meets[at(child)];
    if (parent < 0 || map_.wires(meet) == 0) return;
    map_.alongWires(meet, rankOf(isDown ? parent : child), rankOf(isDown ? child : parent),
                    [&](std::size_t wire) { visit(meet, wire); });
  };
  const auto forCrossings = [&](int child, const auto& visit) {
    const int parent = tree.node(child).parent;
    if (parent < 0) return;
    const int from = rankOf(isDown ? parent : child), to = rankOf(isDown ? child : parent);
    meets[at(child)] = map_.meet(from, to);
    for (int l = 0; l < meets[at(child)]; ++l) {
      const auto out = at(map_.groupOf(from, l)), in = at(map_.groupOf(to, l));
      visit(l, crossOut[at(l)][out], crossIn[at(l)][in], out, in);
    }
  };
  for (const std::vector<int>& tier : order) {
    for (const int child : tier) {
      const double bytes = bytesOf(child);
      const int parent = tree.node(child).parent;
      if (parent < 0) continue;
      out_[at(rankOf(isDown ? parent : child))] += bytes;
      in_[at(rankOf(isDown ? child : parent))] += bytes;
      forCrossings(child, [&](int l, double& out, double& in, std::size_t from, std::size_t to) {
        out += bytes;
        in += bytes;
        groupOut_[at(l)][from] += bytes;
        groupIn_[at(l)][to] += bytes;
      });
      forWires(child, [&](int l, std::size_t wire) {
        crossWire[at(l)][wire] += bytes;
        wire_[at(l)][wire] += bytes;
      });
    }
    for (const int child : tier) {
      forCrossings(child, [&](int l, double& out, double& in, std::size_t from, std::size_t to) {
        shared[at(child)] = std::max(
            {shared[at(child)], out * perByteOf(l, static_cast<int>(from)), in * perByteOf(l, static_cast<int>(to))});
      });
      forWires(child, [&](int l, std::size_t wire) {
        shared[at(child)] = std::max(shared[at(child)], crossWire[at(l)][wire] / map_.level(l).linkBytesPerSecond);
      });
    }
    for (const int child : tier) {
      forCrossings(child, [](int, double& out, double& in, std::size_t, std::size_t) { out = in = 0; });
      forWires(child, [&](int l, std::size_t wire) { crossWire[at(l)][wire] = 0; });
    }
  }

  /// Of the message above `child`, which shares the port of its parent with so many bytes.
  const auto transferOf = [&](int child, double atPort) {
    const CostLevel& level = map_.level(meets[at(child)]);
    const double bytes = bytesOf(child);
    return std::max({atPort / map_.port(rankOf(tree.node(child).parent)), bytes / map_.port(rankOf(child)),
                     shared[at(child)], bytes * level.beta}) +
           level.alpha;
  };

  std::vector<double> ready(at(places), 0.0);  // down: has its data; up: may send
  double end = 0;
  std::vector<int> sorted;
  const auto sendDown = [&](int parent) {
    double& mine = ready[at(parent)];
    if (parent != tree.root()) mine += overhead;
    sorted = tree.node(parent).children;
    if (!load.oneByOne) mine += overhead * static_cast<double>(sorted.size());
    if (load.isPerRank) std::ranges::sort(sorted, {}, bytesOf);
    double before = 0;  // bytes of those that are over
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      const int child = sorted[i];
      const double bytes = bytesOf(child);
      const auto left = static_cast<double>(sorted.size() - i);
      double& there = ready[at(child)];
      there = mine + (load.oneByOne ? overhead : 0) + transferOf(child, before + bytes * left);
      // The largest are sent first, the others have to wait for the CPU.
      if (load.oneByOne) there = std::max(there, mine + overhead * left + hop(meets[at(child)], bytes));
      before += bytes;
    }
  };
  const auto takeUp = [&](int parent) {
    double& mine = ready[at(parent)];
    sorted = tree.node(parent).children;
    std::ranges::sort(sorted, std::greater(), [&](int child) { return ready[at(child)]; });
    const double perChild = overhead + map_.machine().gamma * load.combinedPerChild;
    double behind = 0;  // bytes of those that start later, and itself
    double last = 0, handled = 0;
    for (const int child : sorted) {
      behind += bytesOf(child);
      last = std::max(last, ready[at(child)] + transferOf(child, behind));
    }
    const bool oneByOne = load.oneByOne && !sorted.empty() &&
                          (ready[at(sorted.front())] != ready[at(sorted.back())] ||
                           bytesOf(sorted.front()) != bytesOf(sorted.back()));  // else all arrive at the end
    if (oneByOne) {
      for (auto child = sorted.rbegin(); child != sorted.rend(); ++child)
        handled = std::max(handled, ready[at(*child)] + transferOf(*child, bytesOf(*child))) + perChild;
      mine = std::max(handled, last + perChild);
    } else {
      mine = last + perChild * static_cast<double>(sorted.size());
    }
    if (parent != tree.root()) mine += overhead;
  };
  for (const std::vector<int>& tier : order) {
    for (const int place : tier) {
      isDown ? sendDown(place) : takeUp(place);
      end = std::max(end, ready[at(place)]);
    }
  }
  return end;
}

}  // namespace tacc
