#include "selection/node_selector.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <tuple>
#include <utility>

#include "core/default_arithmetic.hpp"
#include "selection/selection.hpp"

namespace tacc {
namespace {

/// The rule was measured on machines of one tier, and prices are no better than that.
constexpr double worthLeavingTheRule = 0.9;

/// More steps are not worth writing to find out that they are not the fastest.
constexpr std::size_t mostStepsPriced = 400'000;

std::vector<std::vector<int>> sizesOf(const NodeMachine& machine, const std::vector<int>& tiers) {
  std::vector<std::vector<int>> groups;
  for (const int t : tiers) {
    const std::vector<int>& begins = machine.tiers()[static_cast<std::size_t>(t)].begins;
    std::vector<int>& sizes = groups.emplace_back();
    for (std::size_t g = 0; g < begins.size(); ++g)
      sizes.push_back((g + 1 < begins.size() ? begins[g + 1] : machine.ranks()) - begins[g]);
  }
  return groups;
}

/// No groups, each tier's alone, and all of them.
std::vector<NodeLayout> layoutsOf(const NodeMachine& machine) {
  std::vector<NodeLayout> layouts(1);
  const int inner = static_cast<int>(machine.tiers().size()) - 1;
  std::vector<int> all;
  std::string names;
  for (int t = 0; t < inner; ++t) {
    const std::string name(nameOf(machine.tiers()[static_cast<std::size_t>(t)].kind));
    layouts.push_back({sizesOf(machine, {t}), name});
    all.push_back(t);
    names += (names.empty() ? "" : ", ") + name;
  }
  if (inner > 1) layouts.push_back({sizesOf(machine, all), names});
  return layouts;
}

std::size_t classOf(std::size_t bytes) {
  const std::size_t power = std::bit_floor(std::max<std::size_t>(bytes, 1));
  return power < 4 ? power : bytes / (power / 4) * (power / 4);
}

/// The question that stands for all of its class, so that who asks first makes no difference: ranks may ask, to
/// explain, what others do not. A post is a multiple of the call's bytes.
NodeQuestion ofClass(NodeQuestion question) {
  const std::size_t bytes = std::max<std::size_t>(question.bytes, 1);
  question.bytes = classOf(bytes);
  if (question.posted > 0) question.posted = std::max<std::size_t>(question.posted / bytes * question.bytes, 1);
  if (!isRooted(question.collective)) question.root = 0;
  return question;
}

/// What the ranks read, if everybody posts all that others need of it.
EagerPosts eagerPosts(const NodeQuestion& question) {
  EagerPosts posts{static_cast<double>(question.posted), static_cast<double>(question.bytes)};
  if (!isRooted(question.collective)) return posts;
  posts.root = question.root;
  posts.fromRoot = question.collective == Collective::broadcast || question.collective == Collective::scatter;
  return posts;
}

std::string_view burdenOf(const NodeCost& cost) {
  if (cost.links > 0.7 * cost.seconds) return "the memory, or the way between groups, is at work nearly all the time";
  if (cost.waits > 0.5 * cost.seconds) return "mostly looking at the others' progress";
  if (cost.cores > 0.7 * cost.seconds) return "the busiest core reads and writes nearly all the time";
  return "partly waiting for one round after the other";
}

}  // namespace

NodeSelector::NodeSelector(NodeMachine machine, std::size_t arenaBytes, bool isOversubscribed)
    : machine_(std::move(machine)),
      arenaBytes_(arenaBytes),
      isOversubscribed_(isOversubscribed),
      layouts_(layoutsOf(machine_)) {}

const PlanRequest& NodeSelector::request(Collective collective, int root, int layout) const {
  const auto found = requests_.find({collective, root, layout});
  if (found != requests_.end()) return found->second;
  const PlanRequest made{collective, machine_.ranks(), root, layouts_[static_cast<std::size_t>(layout)].groups, {}};
  return requests_.emplace(std::tuple(collective, root, layout), made).first->second;
}

NodeCandidate NodeSelector::price(const NodeQuestion& question, const Algorithm& algorithm, int layout) const {
  NodeCandidate candidate;
  candidate.algorithm = &algorithm;
  candidate.layout = layout;
  const PlanRequest& request = this->request(question.collective, question.root, layout);
  if (!algorithm.serves(request)) {
    candidate.reason = algorithm.looksAtLayout && layouts_.size() == 1
                           ? "does not serve this call, or not without groups of the ranks"
                           : "does not serve this call";
    return candidate;
  }
  // What the rule says runs in any case.
  const bool isUsual = algorithm.suitsSharedMemory != nullptr && algorithm.suitsSharedMemory(request);
  const std::size_t steps = makeLocalPlan(algorithm, request, 0).steps.size() * static_cast<std::size_t>(request.ranks);
  if (!isUsual && steps > mostStepsPriced) {
    candidate.reason = "too many steps to be priced";
    return candidate;
  }
  const NodeWork work(makePlan(algorithm, request), question.isDirect);
  const CallShape shape{request, question.bytes, isOversubscribed_, {}};
  const NodeCall call{static_cast<double>(question.bytes), stagingChunk(shape), arenaBytes_};
  if (!isUsual && !fits(work, call)) {
    candidate.reason = "has more in slots than the staging area holds";
    return candidate;
  }
  candidate.isPossible = true;
  candidate.cost = priceOnNode(work, machine_, call);
  candidate.cost.seconds += priceEntry(machine_);
  return candidate;
}

NodeCandidate NodeSelector::priceEagerRoute(const NodeQuestion& question) const {
  NodeCandidate eager;
  eager.isPossible = true;
  eager.cost.seconds = eager.cost.alone = eager.cost.cores = priceEager(eagerPosts(question), machine_);
  return eager;
}

std::vector<NodeCandidate> NodeSelector::priceAll(const NodeQuestion& question) const {
  std::vector<NodeCandidate> candidates;
  if (question.posted > 0) candidates.push_back(priceEagerRoute(question));
  for (const Algorithm& algorithm : algorithms()) {
    std::vector<NodeCandidate> ways = {price(question, algorithm, 0)};
    // Groups change nothing for what serves without.
    if (!ways[0].isPossible && algorithm.looksAtLayout) {
      for (int layout = 1; layout < static_cast<int>(layouts_.size()); ++layout) {
        NodeCandidate way = price(question, algorithm, layout);
        if (way.isPossible) ways.push_back(std::move(way));
      }
      if (ways.size() > 1) ways.erase(ways.begin());
    }
    std::ranges::move(ways, std::back_inserter(candidates));
  }
  std::ranges::stable_sort(candidates, [](const NodeCandidate& a, const NodeCandidate& b) {
    return std::tuple(!a.isPossible, a.cost.seconds) < std::tuple(!b.isPossible, b.cost.seconds);
  });
  const auto isPlanOfRule = [&](const NodeCandidate& candidate) {
    return candidate.isPossible && candidate.algorithm != nullptr && candidate.layout == 0 &&
           candidate.algorithm->suitsSharedMemory != nullptr &&
           candidate.algorithm->suitsSharedMemory(request(question.collective, question.root, 0));
  };
  const auto plan = std::ranges::find_if(candidates, isPlanOfRule);
  const auto rule = question.posted == 0 ? plan : std::ranges::find(candidates, nullptr, [](const NodeCandidate& one) {
    return one.algorithm;
  });
  const auto other = !machine_.isFlat() ? candidates.begin() : mayReadParts(question.collective) ? plan : rule;
  const bool isLeft = other->cost.seconds < worthLeavingTheRule * rule->cost.seconds;
  const auto front = isLeft ? other : rule;
  std::rotate(candidates.begin(), front, front + 1);
  const double chosen = candidates.front().cost.seconds;
  for (std::size_t i = 0; i < candidates.size() && candidates[i].isPossible; ++i) {
    NodeCandidate& candidate = candidates[i];
    const std::string_view burden = burdenOf(candidate.cost);
    if (i > 0)
      candidate.reason = fmt::format("{:.2f} times as long; {}", candidate.cost.seconds / chosen, burden);
    else if (isLeft)
      candidate.reason =
          fmt::format("{}; {}", machine_.isFlat() ? "faster than that all read all" : "the fastest", burden);
    else
      candidate.reason = fmt::format(
          "{}; {}",
          machine_.isFlat() ? "the rule where ranks stand alike" : "the rule, as nothing else is a tenth faster",
          burden);
  }
  return candidates;
}

const std::vector<NodeCandidate>& NodeSelector::explain(const NodeQuestion& question) {
  const NodeQuestion priced = ofClass(question);
  std::vector<NodeCandidate>& candidates =
      candidates_[{priced.collective, priced.root, priced.bytes, priced.isDirect, priced.posted > 0}];
  if (!candidates.empty()) return candidates;
  const DefaultArithmetic arithmetic;
  candidates = priceAll(priced);
  return candidates;
}

bool NodeSelector::mayReadParts(Collective collective) const noexcept {
  return !isOversubscribed_ && machine_.ranks() > 2 &&
         (collective == Collective::allReduce || collective == Collective::reduce);
}

bool NodeSelector::goesEager(const NodeQuestion& question) {
  if (!machine_.isFlat()) return choose(question).algorithm == nullptr;
  if (!mayReadParts(question.collective)) return true;
  NodeQuestion priced = ofClass(question);
  priced.root = 0;  // all are alike
  const auto [known, isNew] = goesEager_.try_emplace({priced.collective, priced.bytes}, true);
  if (!isNew) return known->second;
  const DefaultArithmetic arithmetic;
  const PlanRequest& request = this->request(priced.collective, 0, 0);
  for (const Algorithm& algorithm : algorithms())
    if (algorithm.suitsSharedMemory != nullptr && algorithm.suitsSharedMemory(request)) {
      const NodeCandidate plan = price(priced, algorithm, 0);
      known->second =
          !plan.isPossible || plan.cost.seconds >= worthLeavingTheRule * priceEagerRoute(priced).cost.seconds;
      break;
    }
  return known->second;
}

int NodeSelector::bestLayout(const NodeQuestion& question, const Algorithm& algorithm) {
  if (!algorithm.looksAtLayout || machine_.isFlat()) return 0;
  for (const NodeCandidate& candidate : explain(question))
    if (candidate.algorithm == &algorithm && candidate.isPossible) return candidate.layout;
  return 0;
}

std::string describeCandidates(const std::vector<NodeCandidate>& candidates, const std::vector<NodeLayout>& layouts) {
  std::string text;
  for (const NodeCandidate& candidate : candidates) {
    const std::string& groups = layouts[static_cast<std::size_t>(candidate.layout)].name;
    const std::string name = std::string(candidate.algorithm == nullptr ? "eager" : candidate.algorithm->name) +
                             (groups.empty() ? "" : " (" + groups + ")");
    const std::string time =
        candidate.isPossible ? fmt::format("{:.1f} us", candidate.cost.seconds * 1e6) : std::string("-");
    text += fmt::format("{:2} {:34} {:>14}  {}\n", &candidate == candidates.data() ? "->" : "", name, time,
                        candidate.reason);
  }
  return text;
}

}  // namespace tacc
