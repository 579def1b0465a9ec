// Which switches are leaves, and how far the others are above them.
#include <algorithm>
#include <deque>
#include <map>

#include "topology/model/draft.hpp"
#include "topology/model/sets.hpp"
#include "topology/sources/fabric_plugs.hpp"

namespace tacc {
namespace {

/// Trying out which switches are leaves may touch as many links: seconds of work, and no network that exists needs it.
constexpr std::size_t mostWork = 100'000'000;

class Leaves {
 public:
  Leaves(const Fabric& fabric, const std::vector<PluggedHost>& hosts)
      : plugs_(fabric.devices.size(), 0), neighbours_(fabric.devices.size()) {
    for (const PluggedHost& host : hosts) {
      for (const Plug& plug : host.plugs) ++plugs_[plug.at];
    }
    for (const Fabric::Cable& cable : fabric.cables) {
      if (fabric.devices[cable.a].kind != Fabric::Kind::switching) continue;
      if (fabric.devices[cable.b].kind == Fabric::Kind::switching && cable.a != cable.b)
        links_.emplace_back(std::minmax(cable.a, cable.b));
    }
    std::sort(links_.begin(), links_.end());
    links_.erase(std::unique(links_.begin(), links_.end()), links_.end());
    for (const auto& [a, b] : links_) {
      neighbours_[a].push_back(b);
      neighbours_[b].push_back(a);
    }
  }

  std::vector<std::uint32_t> find() {
    std::vector<std::uint32_t> some = chooseCertain();
    std::vector<std::vector<std::uint32_t>> shape = shapeOf(leaves_);
    const std::vector<std::uint32_t> certain = leaves_;
    leaves_.insert(leaves_.end(), some.begin(), some.end());
    if (some.empty() || isSame(shapeOf(certain, leaves_), shape)) return steps(leaves_);
    leaves_ = certain;
    for (const std::uint32_t one : some) {  // the fullest first
      if (work_ > mostWork) break;
      std::vector<std::uint32_t> more = leaves_;
      more.push_back(one);
      if (isSame(shapeOf(leaves_, more), shape)) {
        leaves_ = std::move(more);
        shape = shapeOf(leaves_);
      }
    }
    return withoutDetours(steps(leaves_));
  }

 private:
  using Shape = std::vector<std::vector<std::uint32_t>>;

  /// Half of all cables to hosts end at switches with at least as many as one of these has. Returns the others that
  /// have hosts, the fullest first.
  std::vector<std::uint32_t> chooseCertain() {
    std::vector<std::uint32_t> all;
    std::size_t total = 0;
    for (std::uint32_t device = 0; device < plugs_.size(); ++device) {
      if (plugs_[device] > 0) all.push_back(device);
      total += plugs_[device];
    }
    std::stable_sort(all.begin(), all.end(), [&](std::uint32_t a, std::uint32_t b) { return plugs_[a] > plugs_[b]; });
    std::size_t passed = 0, typical = 0;
    for (const std::uint32_t device : all) {
      typical = plugs_[device];
      passed += typical;
      if (passed * 2 >= total) break;
    }
    const auto few = std::find_if(all.begin(), all.end(), [&](std::uint32_t one) { return plugs_[one] < typical; });
    leaves_.assign(all.begin(), few);
    return {few, all.end()};
  }

  std::vector<std::uint32_t> steps(const std::vector<std::uint32_t>& leaves) {
    std::vector<std::uint32_t> steps(plugs_.size(), unreached);
    std::deque<std::uint32_t> next;
    for (const std::uint32_t leaf : leaves) {
      steps[leaf] = 0;
      next.push_back(leaf);
    }
    while (!next.empty()) {
      const std::uint32_t device = next.front();
      next.pop_front();
      for (const std::uint32_t other : neighbours_[device]) {
        if (steps[other] != unreached) continue;
        steps[other] = steps[device] + 1;
        next.push_back(other);
      }
    }
    work_ += links_.size() + plugs_.size();
    return steps;
  }

  /// Who has hosts, is no leaf and joins nothing, such as the switch of login hosts that hangs on cores, counts as one
  /// step nearer: with what it hangs on.
  std::vector<std::uint32_t> withoutDetours(std::vector<std::uint32_t> steps) {
    Sets sets(plugs_.size());
    const std::vector<std::uint32_t> before = steps;
    for (std::uint32_t step = 0; step <= mostLevels; ++step) {
      for (const auto& [a, b] : links_)
        if (std::max(before[a], before[b]) == step) sets.join(a, b);
      for (std::uint32_t device = 0; device < plugs_.size() && step > 0; ++device) {
        if (plugs_[device] == 0 || before[device] != step + 1) continue;
        std::vector<std::uint32_t> below = neighbours_[device];
        std::erase_if(below, [&](std::uint32_t other) { return before[other] != step; });
        const auto isOther = [&](std::uint32_t other) { return sets.find(other) != sets.find(below.front()); };
        if (std::ranges::none_of(below, isOther)) steps[device] = step;
      }
    }
    return steps;
  }

  /// How `members` are grouped over switches up to each step from `leaves`, what repeats left out.
  Shape shapeOf(const std::vector<std::uint32_t>& members, const std::vector<std::uint32_t>& leaves) {
    const std::vector<std::uint32_t> step = steps(leaves);
    std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> byStep;
    for (const auto& [a, b] : links_) {
      const std::uint32_t higher = std::max(step[a], step[b]);
      if (higher == unreached) continue;
      const std::size_t at = std::min<std::size_t>(higher, mostLevels);
      if (byStep.size() <= at) byStep.resize(at + 1);
      byStep[at].emplace_back(a, b);
    }
    Shape shape;
    Sets sets(plugs_.size());
    for (const auto& links : byStep) {
      for (const auto& [a, b] : links) sets.join(a, b);
      std::vector<std::uint32_t> groups;
      std::map<std::uint32_t, std::uint32_t> numberOf;
      for (const std::uint32_t one : members)
        groups.push_back(
            numberOf.try_emplace(sets.find(one), static_cast<std::uint32_t>(numberOf.size())).first->second);
      if (shape.empty() || shape.back() != groups) shape.push_back(std::move(groups));
      work_ += links.size() + members.size();
    }
    return shape;
  }
  Shape shapeOf(const std::vector<std::uint32_t>& leaves) { return shapeOf(leaves, leaves); }

  /// Whether both have the same groups; that of the members apart, which one of them may lack, does not count.
  static bool isSame(Shape a, Shape b) {
    const auto tidy = [](Shape& shape) {
      std::erase_if(shape, [](const auto& groups) {
        return std::adjacent_find(groups.begin(), groups.end(), [](auto x, auto y) { return y != x + 1; }) ==
               groups.end();
      });
    };
    tidy(a);
    tidy(b);
    return a == b;
  }

  std::vector<std::size_t> plugs_;  // by device: cables to hosts
  std::vector<std::pair<std::uint32_t, std::uint32_t>> links_;
  std::vector<std::vector<std::uint32_t>> neighbours_;
  std::vector<std::uint32_t> leaves_;
  std::size_t work_ = 0;
};

}  // namespace

std::vector<std::uint32_t> stepsFromLeaves(const Fabric& fabric, const std::vector<PluggedHost>& hosts) {
  return Leaves(fabric, hosts).find();
}

}  // namespace tacc
