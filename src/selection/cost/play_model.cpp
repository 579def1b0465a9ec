#include "selection/cost/play_model.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <unordered_map>
#include <utility>

#include "core/index.hpp"
#include "selection/cost/play_part.hpp"

namespace tacc {
namespace {

constexpr double notYet = std::numeric_limits<double>::infinity();

using PartOf = std::function<const PlayPart*(int rank)>;

class ModelWriter {
 public:
  ModelWriter(const PlanRequest& request, const CostMap& map, const RankClasses& classes, const PartOf& partOf,
              double chunkBytes)
      : map_(map), classes_(classes), partOf_(partOf), chunkBytes_(chunkBytes), request_(request) {}

  std::optional<PlayModel> write() {
    for (int c = 0; c < classes_.count(); ++c)
      if (!writeSends(c)) return std::nullopt;
    landings_.resize(model_.messages.size());
    for (int c = 0; c < classes_.count(); ++c)
      if (!writeReceives(c)) return std::nullopt;
    nameLinks();
    for (std::size_t m = 0; m < landings_.size(); ++m) {
      for (const Landing& landing : landings_[m]) model_.awaiters.items.push_back(landing.step);
      model_.awaiters.close();
      cross(static_cast<int>(m));
    }
    return std::move(model_);
  }

 private:
  /// Where copies of a message end: at the rank that stands for a class, and where it meets their senders.
  struct Landing {
    int step, receiver, meet;
    int copies;
  };

  int representative(int c) const { return classes_.representatives[at(c)]; }

  bool writeSends(int c) {
    const int rank = representative(c);
    const PlayPart* part = partOf_(rank);
    if (part == nullptr) return false;
    const bool isSplit = partitionOf(request_.collective) == Partition::split;
    block_ = isSplit ? chunkBytes_ / part->planBlocks : chunkBytes_;
    firstMessages_.push_back(static_cast<int>(model_.messages.size()));
    std::unordered_map<int, int> pairs;
    std::size_t next = 0;
    for (const PlayPart::OneStep& step : part->steps) {
      const double bytes = block_ * step.blocks;
      double seconds = step.receives + step.sends == 0 ? bytes : bytes * (step.sources - 1);
      seconds *= map_.machine().gamma;
      for (int i = 0; i < step.sends; ++i) {
        const int to = part->to[next++], meet = map_.meet(rank, to);
        const CostLevel& level = map_.level(meet);
        const auto [pair, isNew] = pairs.try_emplace(to, static_cast<int>(model_.pairs));
        if (isNew) ++model_.pairs;
        model_.sends.items.push_back(static_cast<int>(model_.messages.size()));
        model_.messages.push_back({c, pair->second, bytes, level.alpha, level.beta > 0 ? 1 / level.beta : notYet});
        meets_.push_back(meet);
        seconds += map_.overhead(meet);
      }
      model_.sends.close();
      model_.seconds.push_back(seconds);
      model_.awaited.push_back(0);
      model_.rankOf.push_back(c);
    }
    model_.firstSteps.push_back(static_cast<int>(model_.seconds.size()));
    return true;
  }

  bool writeReceives(int c) {
    const int rank = representative(c);
    const PlayPart& part = *partOf_(rank);
    std::unordered_map<int, int> taken;  // messages of each sender
    std::size_t next = 0;
    for (std::size_t s = 0; s < part.steps.size(); ++s) {
      const int step = model_.firstSteps[at(c)] + static_cast<int>(s);
      for (int i = 0; i < part.steps[s].receives; ++i) {
        const int from = part.from[next++], sender = classes_.classOf[at(from)];
        const PlayPart* theirs = partOf_(from);
        if (theirs == nullptr || theirs->to.size() != partOf_(representative(sender))->to.size()) return false;
        const int number = theirs->messageTo(rank, taken[from]++);
        if (number < 0) return false;
        const int meet = map_.meet(from, rank);
        model_.seconds[at(step)] += map_.overhead(meet);
        std::vector<Landing>& landings = landings_[at(firstMessages_[at(sender)] + number)];
        if (!landings.empty() && landings.back().step == step) {
          ++landings.back().copies;
        } else {
          landings.push_back({step, rank, meet, 1});
          ++model_.awaited[at(step)];
        }
      }
    }
    return true;
  }

  /// Ports out and in of every class, then out and in of every class of groups, then the links inside groups.
  void nameLinks() {
    model_.crowding = map_.machine().crowding;
    for (int c = 0; c < classes_.count(); ++c)
      model_.capacities.insert(model_.capacities.end(), 2, map_.port(representative(c)));
    for (int l = 0; l + 1 < map_.levels(); ++l) {
      firstUplink_.push_back(static_cast<int>(model_.capacities.size()));
      const std::vector<int>& groups = classes_.groupsOf[at(l)];
      const auto first = model_.capacities.size();
      model_.capacities.resize(first + 2 * at(*std::ranges::max_element(groups) + 1), notYet);
      for (int g = 0; g < map_.groups(l); ++g) {
        const double capacity = map_.level(l).uplinks.of(g);
        for (std::size_t way = 0; way < 2 && capacity > 0; ++way)
          model_.capacities[first + 2 * at(groups[at(g)]) + way] = capacity;
      }
    }
    for (int l = 0; l < map_.levels(); ++l) {
      firstWire_.push_back(static_cast<int>(model_.capacities.size()));
      model_.capacities.insert(model_.capacities.end(), map_.wires(l), map_.level(l).linkBytesPerSecond);
    }
  }

  /// Ranks of the same class in a rank's group.
  int likeIn(int rank, int l) {
    if (classes_.count() == map_.ranks()) return 1;
    const int group = map_.groupOf(rank, l);
    const auto key = (static_cast<std::uint64_t>(l) << 48) ^ static_cast<std::uint64_t>(rank);
    const auto [count, isNew] = alike_.try_emplace(key, 0);
    if (isNew)
      for (int r = map_.beginOf(group, l); r < map_.endOf(group, l); ++r)
        count->second += classes_.classOf[at(r)] == classes_.classOf[at(rank)] ? 1 : 0;
    return count->second;
  }

  void cross(int message) {
    const std::size_t first = model_.crossings.items.size();
    const auto add = [&](int link, int messages) {
      if (model_.capacities[at(link)] == notYet) return;
      for (std::size_t i = first; i < model_.crossings.items.size(); ++i) {
        if (model_.crossings.items[i].link != link) continue;
        model_.crossings.items[i].messages += messages;
        return;
      }
      model_.crossings.items.push_back({link, messages});
    };
    const int sender = model_.messages[at(message)].sender, rank = representative(sender), meet = meets_[at(message)];
    add(2 * sender, 1);
    for (int l = 0; l < meet; ++l)
      add(firstUplink_[at(l)] + 2 * classes_.groupsOf[at(l)][at(map_.groupOf(rank, l))], likeIn(rank, l));
    for (const Landing& landing : landings_[at(message)]) {
      const int to = landing.receiver;
      add(2 * classes_.classOf[at(to)] + 1, landing.copies);
      for (int l = 0; l < landing.meet; ++l)
        add(firstUplink_[at(l)] + 2 * classes_.groupsOf[at(l)][at(map_.groupOf(to, l))] + 1,
            landing.copies * likeIn(to, l));
      map_.alongWires(landing.meet, rank, to,
                      [&](std::size_t wire) { add(firstWire_[at(landing.meet)] + static_cast<int>(wire), 1); });
    }
    model_.crossings.close();
  }

  const CostMap& map_;
  const RankClasses& classes_;
  const PartOf& partOf_;
  double chunkBytes_, block_ = 0;
  const PlanRequest& request_;
  PlayModel model_;
  std::vector<int> meets_;          // per message: where it meets the rank to which it goes
  std::vector<int> firstMessages_;  // per class
  std::vector<std::vector<Landing>> landings_;
  std::vector<int> firstUplink_, firstWire_;  // per level
  std::unordered_map<std::uint64_t, int> alike_;
};

}  // namespace

PlayModel playModelOf(const Plan& plan, const CostMap& map, double chunkBytes) {
  std::vector<PlayPart> parts;
  for (const RankPlan& rank : plan.ranks) {
    PlayPart& part = parts.emplace_back();
    part.planBlocks = plan.blocks;
    for (const Step& step : rank.steps) part.add(step);
    part.finish();
  }
  const PartOf partOf = [&](int rank) { return &parts[at(rank)]; };
  const RankClasses classes = separate(map);
  return ModelWriter(plan.request, map, classes, partOf, chunkBytes).write().value();
}

std::optional<PlayModel> playModelOf(const Algorithm& algorithm, const PlanRequest& request, const CostMap& map,
                                     const RankClasses& classes, double chunkBytes, std::size_t mostSteps) {
  std::unordered_map<int, PlayPart> parts;
  std::size_t steps = 0;
  const PartOf partOf = [&](int rank) -> const PlayPart* {
    const auto [found, isNew] = parts.try_emplace(rank);
    if (!isNew) return &found->second;
    if (steps > mostSteps) return nullptr;
    const LocalPlan local = makeLocalPlan(algorithm, request, rank);
    steps += local.steps.size();
    if (steps > mostSteps) return nullptr;
    found->second.planBlocks = local.blocks;
    local.steps.forEach([&](const Step& step) { found->second.add(step); });
    found->second.finish();
    return &found->second;
  };
  return ModelWriter(request, map, classes, partOf, chunkBytes).write();
}

std::optional<PlayModel> playModelOf(const Exchanges& exchanges, const PlanRequest& request, const CostMap& map,
                                     const RankClasses& classes, double chunkBytes, std::size_t mostSteps) {
  const std::optional<std::size_t> ofOne = PhaseParts::stepsOf(exchanges, map.ranks());
  if (!ofOne || *ofOne * at(classes.count()) > mostSteps) return std::nullopt;
  const PhaseParts all(exchanges, map.ranks());
  std::unordered_map<int, PlayPart> parts;
  std::size_t steps = 0;
  const PartOf partOf = [&](int rank) -> const PlayPart* {
    const auto [found, isNew] = parts.try_emplace(rank);
    if (isNew && steps <= mostSteps) {
      found->second = all.partOf(rank);
      steps += found->second.steps.size();
    }
    return steps <= mostSteps ? &found->second : nullptr;
  };
  return ModelWriter(request, map, classes, partOf, chunkBytes).write();
}

}  // namespace tacc
