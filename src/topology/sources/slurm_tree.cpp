#include <algorithm>
#include <numeric>
#include <set>
#include <unordered_map>

#include "core/error.hpp"
#include "core/parse.hpp"
#include "topology/model/draft.hpp"
#include "topology/model/host_list.hpp"
#include "topology/sources/slurm.hpp"

namespace tacc {
namespace {

using Indices = std::vector<std::size_t>;

/// Each name once, in the order of their first.
void keepFirstOfEach(std::vector<std::string>& names) {
  std::set<std::string_view> seen;
  std::vector<std::string> kept;
  kept.reserve(names.size());  // the views into it must stay
  for (const std::string& name : names) {
    if (seen.contains(name)) continue;
    kept.push_back(name);
    seen.insert(kept.back());
  }
  names = std::move(kept);
}

class Switches {
 public:
  explicit Switches(std::vector<SwitchEntry> entries) : entries_(std::move(entries)) {}

  std::vector<SwitchEntry> tree() {
    for (SwitchEntry& entry : entries_) {
      keepFirstOfEach(entry.hosts);
      keepFirstOfEach(entry.children);
    }
    if (!connect()) return std::move(entries_);  // topologyOfSwitches() says what is wrong with the names
    measure();
    takeAwayRepeats();
    if (std::ranges::any_of(parents_, [](const Indices& above) { return above.size() > 1; })) {
      joinThoseThatShare();
      if (!connect()) fail(taccInternalError, "the joined switches have no names of their own");
      measure();
    }
    shorten();
    return std::move(entries_);
  }

 private:
  bool connect() {
    std::unordered_map<std::string_view, std::size_t> byName;
    for (std::size_t i = 0; i < entries_.size(); ++i)
      if (!byName.try_emplace(entries_[i].name, i).second) return false;
    children_.assign(entries_.size(), {});
    parents_.assign(entries_.size(), {});
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      for (const std::string& child : entries_[i].children) {
        const auto found = byName.find(child);
        if (found == byName.end()) return false;
        children_[i].push_back(found->second);
        parents_[found->second].push_back(i);
      }
    }
    return true;
  }

  /// Heights, from below: a switch is one higher than its highest child.
  void measure() {
    height_.assign(entries_.size(), 1);
    fromBelow_.clear();
    Indices open;  // children whose height is not known yet
    for (const Indices& below : children_) open.push_back(below.size());
    for (std::size_t i = 0; i < entries_.size(); ++i)
      if (open[i] == 0) fromBelow_.push_back(i);
    for (std::size_t k = 0; k < fromBelow_.size(); ++k) {
      for (const std::size_t above : parents_[fromBelow_[k]]) {
        height_[above] = std::max(height_[above], height_[fromBelow_[k]] + 1);
        if (--open[above] == 0) fromBelow_.push_back(above);
      }
    }
    if (fromBelow_.size() < entries_.size()) refuseLoop(open);
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (height_[i] <= static_cast<int>(mostLevels) + 1) continue;
      fail(taccInvalidArgument, "{}: the switch {} has others below it that are below more than {} others",
           entries_[i].where, shownText(entries_[i].name), mostLevels);
    }
  }

  /// `open` is above 0 for the switches of the loop and for all above it.
  [[noreturn]] void refuseLoop(const Indices& open) const {
    std::size_t at = 0;
    while (open[at] == 0) ++at;
    std::vector<bool> seen(entries_.size());
    Indices way;
    while (!seen[at]) {
      seen[at] = true;
      way.push_back(at);
      at = *std::ranges::find_if(children_[at], [&](std::size_t child) { return open[child] > 0; });
    }
    way.erase(way.begin(), std::ranges::find(way, at));
    constexpr std::size_t shown = 8;
    std::string chain;
    for (std::size_t k = 0; k < std::min(way.size(), shown); ++k) chain += shownText(entries_[way[k]].name) + " > ";
    fail(taccInvalidArgument, "{}: the switch {} is below itself: the switches form a loop: {}{}{}", entries_[at].where,
         shownText(entries_[at].name), chain, way.size() > shown ? "... > " : "", shownText(entries_[at].name));
  }

  /// Hosts that a switch lists though they are at one below it, as `scontrol` does it for all upper switches.
  void takeAwayRepeats() {
    bool isPossible = false;
    for (std::size_t i = 0; i < entries_.size(); ++i)
      isPossible = isPossible || (!children_[i].empty() && !entries_[i].hosts.empty());
    if (!isPossible) return;
    std::unordered_map<std::string_view, Indices> places;
    for (std::size_t i = 0; i < entries_.size(); ++i)
      for (const std::string& host : entries_[i].hosts) places[host].push_back(i);
    std::unordered_map<std::size_t, std::set<std::size_t>> above;  // of switches that were asked for
    const auto allAbove = [&](std::size_t at) -> const std::set<std::size_t>& {
      const auto [known, isNew] = above.try_emplace(at);
      Indices open = isNew ? parents_[at] : Indices();
      while (!open.empty()) {
        const std::size_t next = open.back();
        open.pop_back();
        if (known->second.insert(next).second) open.insert(open.end(), parents_[next].begin(), parents_[next].end());
      }
      return known->second;
    };
    std::vector<std::vector<std::string>> kept(entries_.size());
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      for (const std::string& host : entries_[i].hosts) {
        const Indices& all = places.at(host);
        const bool isBelow =
            all.size() > 1 && !children_[i].empty() &&
            std::ranges::any_of(all, [&](std::size_t other) { return other != i && allAbove(other).contains(i); });
        if (!isBelow) kept[i].push_back(host);
      }
    }
    for (std::size_t i = 0; i < entries_.size(); ++i) entries_[i].hosts = std::move(kept[i]);
  }

  std::size_t rootOf(Indices& joined, std::size_t at) const {
    while (joined[at] != at) at = joined[at] = joined[joined[at]];
    return at;
  }

  /// From below: switches of one height that reach one switch below become one, and so does what is below them.
  void joinThoseThatShare() {
    const int highest = *std::ranges::max_element(height_);
    std::set<std::string> taken;
    for (const SwitchEntry& entry : entries_) taken.insert(entry.name);
    Indices joined(entries_.size());  // forest of what is reached from one switch
    std::iota(joined.begin(), joined.end(), std::size_t{0});
    std::vector<SwitchEntry> result;
    std::vector<std::size_t> topOf(entries_.size());  // by the first of its tree: what stands for it in the result
    for (int height = 1; height <= highest; ++height) {
      std::vector<std::size_t> here;
      for (std::size_t i = 0; i < entries_.size(); ++i)
        if (height_[i] == height) here.push_back(i);
      std::set<std::size_t> below;  // trees that get something above them
      for (const std::size_t i : here)
        for (const std::size_t child : children_[i]) below.insert(rootOf(joined, child));
      for (const std::size_t i : here)
        for (const std::size_t child : children_[i]) joined[rootOf(joined, child)] = rootOf(joined, i);
      std::unordered_map<std::size_t, Indices> members, trees;
      Indices order;
      for (const std::size_t i : here) {
        Indices& group = members[rootOf(joined, i)];
        if (group.empty()) order.push_back(rootOf(joined, i));
        group.push_back(i);
      }
      for (const std::size_t tree : below) trees[rootOf(joined, tree)].push_back(tree);
      for (const std::size_t root : order) {
        SwitchEntry one = merged(members[root]);
        while (members[root].size() > 1 && !taken.insert(one.name).second) one.name += '+';
        for (const std::size_t tree : trees[root]) one.children.push_back(result[topOf[tree]].name);
        topOf[root] = result.size();
        result.push_back(std::move(one));
      }
    }
    entries_ = std::move(result);
  }

  SwitchEntry merged(const Indices& all) {
    SwitchEntry one;
    std::vector<std::string> names;
    for (const std::size_t i : all) {
      names.push_back(entries_[i].name);
      one.hosts.insert(one.hosts.end(), entries_[i].hosts.begin(), entries_[i].hosts.end());
    }
    one.name = names.size() == 1 ? names.front() : someHosts(names);
    one.where = entries_[all.front()].where;
    return one;
  }

  /// Where all below a switch is one other, both are one group.
  void shorten() {
    std::vector<bool> isGone(entries_.size());
    const bool isOneTree = std::ranges::count_if(parents_, [](const Indices& above) { return above.empty(); }) == 1;
    for (const std::size_t i : fromBelow_) {
      if (children_[i].size() != 1 || !entries_[i].hosts.empty()) continue;
      const std::size_t child = children_[i].front();
      const bool isLeaf = children_[child].empty();
      if (isLeaf && parents_[i].empty() && isOneTree) continue;  // the root of all
      if (isLeaf) {
        if (!parents_[i].empty()) std::ranges::replace(children_[parents_[i].front()], i, child);
        isGone[i] = true;
        parents_[child] = parents_[i];
      } else {
        children_[i] = children_[child];
        entries_[i].hosts = std::move(entries_[child].hosts);
        for (const std::size_t below : children_[i]) parents_[below] = {i};
        isGone[child] = true;
      }
    }
    std::vector<SwitchEntry> kept;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (isGone[i]) continue;
      SwitchEntry entry = entries_[i];
      entry.children.clear();
      for (const std::size_t child : children_[i]) entry.children.push_back(entries_[child].name);
      kept.push_back(std::move(entry));
    }
    entries_ = std::move(kept);
  }

  std::vector<SwitchEntry> entries_;
  std::vector<Indices> children_, parents_;
  std::vector<int> height_;
  Indices fromBelow_;  // all, each behind its children
};

}  // namespace

std::vector<SwitchEntry> asTree(std::vector<SwitchEntry> switches) { return Switches(std::move(switches)).tree(); }

}  // namespace tacc
