// The part of CostLoad that goes along trees.
#include <algorithm>
#include <span>

#include "selection/cost/cost_load.hpp"

namespace tacc {
/// One tree of a phase, one direction. Children of one rank share its port evenly; ranks of the same depth (going up:
/// height) send at the same time and share the uplinks of their groups.
class CostLoad::TreeWalk {
 public:
  TreeWalk(CostLoad& load, const TreeExchange& phase, const TreeExchange::Member& member, bool isDown)
      : load_(load), map_(load.map_), phase_(phase), tree_(*member.tree), isDown_(isDown), ready_(at(tree_.size())) {
    for (int place = 0; place < tree_.size(); ++place) {
      const int rank = tree_.rankOf(place);
      ranks_.push_back(member.ranks.empty() ? rank : member.ranks[at(rank)]);
    }
    order_.resize(at(tree_.node(tree_.root()).height + 1));
    for (int place = 0; place < tree_.size(); ++place) {
      const TreeNode& node = tree_.node(place);
      order_[at(isDown ? node.depth : node.height)].push_back(place);
    }
    shared_.resize(at(tree_.size()), 0.0);
    addLoads();
    if (phase.messages > 1) return;
    Links links(map_);
    for (const std::vector<int>& tier : order_) {
      count(tier, links);
      share(tier, links);
      clear(tier, links);
    }
  }

  /// Per level: bytes of groups each way, and over the links inside them.
  struct Links {
    std::vector<std::vector<double>> out, in, wires;
    explicit Links(const CostMap& map) {
      for (int l = 0; l < map.levels(); ++l) {
        if (l + 1 < map.levels()) out.emplace_back(at(map.groups(l)), 0.0);
        wires.emplace_back(map.wires(l), 0.0);
      }
      in = out;
    }
  };

  /// Messages one behind the other are under way at all edges together, of all trees.
  void countAll(Links& links) const {
    for (const std::vector<int>& tier : order_) count(tier, links);
  }
  void shareAll(const Links& links) {
    for (const std::vector<int>& tier : order_) share(tier, links);
  }

  /// A rank that is the root of another tree too: its children there share its port.
  void sharePorts(const TreeWalk& other) {
    beside_.resize(at(tree_.size()), 0.0);
    if (rankOf(tree_.root()) != other.rankOf(other.tree_.root())) return;
    for (const int child : other.tree_.node(other.tree_.root()).children)
      beside_[at(tree_.root())] += other.bytesOf(child);
  }

  /// From when the ranks are ready at `start` to when they are through with `messages` of those behind one another.
  void walk(const std::vector<double>& start, std::vector<double>& end, int messages) {
    for (int place = 0; place < tree_.size(); ++place) ready_[at(place)] = start[at(rankOf(place))];
    std::vector<double> pace(at(tree_.size()), 0.0);
    double before = 0;  // of the tiers so far
    for (const std::vector<int>& tier : order_) {
      for (const int place : tier) isDown_ ? sendDown(place) : takeUp(place);
      // Of those behind the first, each comes as late after the one before it as the slowest on their way takes.
      for (const int place : tier) before = std::max(before, paceOf(place));
      for (const int place : tier) pace[at(place)] = before;
    }
    for (int place = 0; place < tree_.size(); ++place) {
      double& mine = end[at(rankOf(place))];
      mine = std::max(mine, ready_[at(place)] + (messages - 1) * pace[at(place)]);
      load_.occupy(rankOf(place), mine, mine);
    }
  }

 private:
  int rankOf(int place) const { return ranks_[at(place)]; }
  double bytesOf(int place) const {
    return load_.block_ * phase_.blocks * (phase_.isPerRank ? tree_.node(place).size : 1);
  }
  double besideOf(int place) const { return beside_.empty() ? 0 : beside_[at(place)]; }
  double addedPerChild() const {
    return phase_.combines && !isDown_ ? load_.gamma() * phase_.blocks * load_.block_ : 0;
  }
  int sender(int child) const { return rankOf(isDown_ ? tree_.node(child).parent : child); }
  int receiver(int child) const { return rankOf(isDown_ ? child : tree_.node(child).parent); }

  void addLoads() {
    meets_.assign(at(tree_.size()), 0);
    for (int place = 0; place < tree_.size(); ++place) {
      const TreeNode& node = tree_.node(place);
      const auto children = static_cast<double>(node.children.size());
      load_.own_[at(rankOf(place))] +=
          phase_.messages *
          (load_.overhead() * (children + (place == tree_.root() ? 0 : 1)) + addedPerChild() * children);
      if (node.parent < 0) continue;
      meets_[at(place)] = map_.meet(sender(place), receiver(place));
      load_.load(sender(place), receiver(place), phase_.messages * bytesOf(place));
    }
  }

  template <class Group, class Wire>
  void visitLinks(int child, const Group& group, const Wire& wire) const {
    if (tree_.node(child).parent < 0) return;
    const int from = sender(child), to = receiver(child), meet = meets_[at(child)];
    for (int l = 0; l < meet; ++l) group(l, map_.groupOf(from, l), map_.groupOf(to, l));
    map_.alongWires(meet, from, to, [&](std::size_t w) { wire(meet, w); });
  }

  /// Adds the messages above these places.
  void count(const std::vector<int>& places, Links& links) const {
    for (const int child : places) {
      const double bytes = bytesOf(child);
      visitLinks(
          child,
          [&](int l, int from, int to) {
            links.out[at(l)][at(from)] += bytes;
            links.in[at(l)][at(to)] += bytes;
          },
          [&](int l, std::size_t wire) { links.wires[at(l)][wire] += bytes; });
    }
  }

  /// How long what was counted keeps the links of the messages above these places at work.
  void share(const std::vector<int>& places, const Links& links) {
    for (const int child : places) {
      double& mine = shared_[at(child)];
      visitLinks(
          child,
          [&](int l, int from, int to) {
            mine = std::max({mine, links.out[at(l)][at(from)] * load_.perByteOf(l, from),
                             links.in[at(l)][at(to)] * load_.perByteOf(l, to)});
          },
          [&](int l, std::size_t wire) {
            mine = std::max(mine, links.wires[at(l)][wire] / map_.level(l).linkBytesPerSecond);
          });
    }
  }

  /// For the next tier.
  void clear(const std::vector<int>& places, Links& links) const {
    for (const int child : places)
      visitLinks(
          child, [&](int l, int from, int to) { links.out[at(l)][at(from)] = links.in[at(l)][at(to)] = 0; },
          [&](int l, std::size_t wire) { links.wires[at(l)][wire] = 0; });
  }

  /// Of the message above `child`, which shares the port of its parent with `atPort` bytes in all; without the latency.
  double busyOf(int child, double atPort) const {
    const double bytes = bytesOf(child);
    return std::max({atPort / map_.port(rankOf(tree_.node(child).parent)), bytes / map_.port(rankOf(child)),
                     shared_[at(child)], bytes * map_.level(meets_[at(child)]).beta});
  }
  double transferOf(int child, double atPort) const {
    return busyOf(child, atPort) + map_.level(meets_[at(child)]).alpha;
  }

  /// Seconds for which a message keeps the place and the edge above it at work.
  double paceOf(int place) const {
    const TreeNode& node = tree_.node(place);
    const auto children = static_cast<double>(node.children.size());
    const double added = phase_.combines && phase_.turns ? load_.gamma() * bytesOf(place) : addedPerChild();
    // The CPU of one that turns handles what goes up and what comes down.
    double pace = load_.overhead() * (phase_.turns ? 2 : 1) * (children + (node.parent < 0 ? 0 : 1)) + added * children;
    pace = std::max(pace, children * bytesOf(place) / map_.port(rankOf(place)));
    return node.parent < 0 ? pace : std::max(pace, busyOf(place, bytesOf(place)));
  }

  void sendDown(int parent) {
    const double overhead = load_.overhead();
    double& mine = ready_[at(parent)];
    const double begin = mine;
    if (parent != tree_.root()) mine += overhead;
    std::vector<int> sorted = tree_.node(parent).children;
    if (!phase_.oneByOne) mine += overhead * static_cast<double>(sorted.size());
    if (phase_.isPerRank) std::ranges::sort(sorted, {}, [&](int child) { return bytesOf(child); });
    double before = besideOf(parent);  // bytes of those that are over
    double sent = mine;
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      const int child = sorted[i];
      const double bytes = bytesOf(child), alpha = map_.level(meets_[at(child)]).alpha;
      const auto left = static_cast<double>(sorted.size() - i);
      double there = mine + (phase_.oneByOne ? overhead : 0) + transferOf(child, before + bytes * left);
      // The largest are sent first, the others have to wait for the CPU.
      if (phase_.oneByOne) there = std::max(there, mine + overhead * left + transferOf(child, bytes));
      sent = std::max(sent, there - alpha);
      ready_[at(child)] = std::max(ready_[at(child)], there);
      before += bytes;
    }
    load_.occupy(rankOf(parent), begin, sent);
  }

  void takeUp(int parent) {
    double& mine = ready_[at(parent)];
    std::vector<int> sorted = tree_.node(parent).children;
    std::ranges::sort(sorted, std::greater(), [&](int child) { return ready_[at(child)]; });
    const double perChild = load_.overhead() + addedPerChild();
    double behind = besideOf(parent);  // bytes of those that start later, and itself
    double last = mine, handled = mine;
    for (const int child : sorted) {
      behind += bytesOf(child);
      const double transfer = transferOf(child, behind);
      load_.occupy(rankOf(child), ready_[at(child)],
                   ready_[at(child)] + transfer - map_.level(meets_[at(child)]).alpha);
      last = std::max(last, ready_[at(child)] + transfer);
    }
    const bool oneByOne = phase_.oneByOne && !sorted.empty() &&
                          (ready_[at(sorted.front())] != ready_[at(sorted.back())] ||
                           bytesOf(sorted.front()) != bytesOf(sorted.back()));  // else all arrive at the end
    if (oneByOne) {
      for (auto child = sorted.rbegin(); child != sorted.rend(); ++child)
        handled = std::max(handled, ready_[at(*child)] + transferOf(*child, bytesOf(*child))) + perChild;
      mine = std::max(handled, last + perChild);
    } else {
      mine = last + perChild * static_cast<double>(sorted.size());
    }
    if (parent != tree_.root()) mine += load_.overhead();
    load_.occupy(rankOf(parent), last, mine);
  }

  CostLoad& load_;
  const CostMap& map_;
  const TreeExchange& phase_;
  const Tree& tree_;
  bool isDown_;
  std::vector<int> ranks_;               // of places
  std::vector<std::vector<int>> order_;  // places by depth from the root (up: height from the leaves)
  std::vector<int> meets_;               // of the edge above each place
  std::vector<double> shared_;           // and how long those beside it keep its uplinks and wires at work
  std::vector<double> beside_;           // per place: bytes of other trees over its port
  std::vector<double> ready_;            // down: has its data; up: may send
};

void CostLoad::trees(const TreeExchange& phase) {
  std::vector<double> end = ready_;
  std::vector<TreeWalk> walks;
  for (const TreeExchange::Member& member : phase.trees) walks.emplace_back(*this, phase, member, phase.isDown);
  const auto shareLinks = [&](std::span<TreeWalk> together) {
    if (phase.messages == 1) return;
    TreeWalk::Links links(map_);
    for (const TreeWalk& walk : together) walk.countAll(links);
    for (TreeWalk& walk : together) walk.shareAll(links);
  };
  shareLinks(walks);
  for (TreeWalk& walk : walks)
    for (TreeWalk& other : walks)
      if (&other != &walk) walk.sharePorts(other);
  for (std::size_t i = 0; i < walks.size(); ++i) {
    std::vector<double> turned = ready_;
    // What turns at the root goes down while others still come up.
    walks[i].walk(ready_, phase.turns ? turned : end, phase.turns ? 1 : phase.messages);
    if (!phase.turns) continue;
    TreeWalk down(*this, phase, phase.trees[i], true);
    shareLinks({&down, 1});
    down.walk(turned, end, phase.messages);
  }
  ready_ = std::move(end);
}

}  // namespace tacc
