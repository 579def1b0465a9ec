#include "topology/model/nesting.hpp"

#include <utility>

namespace tacc {

bool Nesting::add(std::vector<std::uint32_t> starts) {
  if (leaves_ > 0 && (starts.empty() || starts.front() != 0)) return false;
  Level level;
  level.groupOf.reserve(leaves_);
  for (std::size_t g = 0; g < starts.size(); ++g) {
    const std::uint32_t end = g + 1 < starts.size() ? starts[g + 1] : leaves_;
    if (end <= starts[g] || end > leaves_) return false;
    // A run that begins where a group of the level below begins, and so ends where one ends, cuts none.
    if (levels() > 1 && starts[g] > 0 &&
        at(levels() - 1).groupOf[starts[g]] == at(levels() - 1).groupOf[starts[g] - 1]) {
      return false;
    }
    level.groupOf.resize(end, static_cast<std::uint32_t>(g));
  }
  level.starts = std::move(starts);
  levels_.push_back(std::move(level));
  return true;
}

std::uint32_t Nesting::groups(int level) const {
  return level == 0 ? leaves_ : static_cast<std::uint32_t>(at(level).starts.size());
}

LeafRange Nesting::leavesOf(int level, std::uint32_t group) const {
  if (level == 0) return {group, group + 1};
  const std::vector<std::uint32_t>& starts = at(level).starts;
  return {starts[group], group + 1 < starts.size() ? starts[group + 1] : leaves_};
}

std::uint32_t Nesting::groupOf(int level, std::uint32_t leaf) const {
  return level == 0 ? leaf : at(level).groupOf[leaf];
}

int Nesting::meet(std::uint32_t a, std::uint32_t b) const {
  if (a == b) return 0;
  int level = 1;
  while (level < levels() && at(level).groupOf[a] != at(level).groupOf[b]) ++level;
  return level;
}

}  // namespace tacc
