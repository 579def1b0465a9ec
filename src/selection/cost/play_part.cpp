#include "selection/cost/play_part.hpp"

#include <algorithm>
#include <variant>

#include "core/index.hpp"

namespace tacc {
namespace {

/// Of one rank: rings of more are priced exactly without being played.
constexpr std::size_t mostSteps = 256;
constexpr int mostMessages = 3;  // of one exchange, as in MessageCut

int rankAt(const TreeExchange::Member& member, int place) {
  const int rank = member.tree->rankOf(place);
  return member.ranks.empty() ? rank : member.ranks[at(rank)];
}

MessageCut cutOf(const Exchange& exchange, int rank) {
  if (exchange.cut) return exchange.cut(rank);
  MessageCut cut;
  cut.count = exchange.messages;
  for (int m = 0; m < cut.count; ++m) cut.blocks[at(m)] = exchange.blocks / cut.count;
  return cut;
}

/// Every rank sends and receives. Where some do not, the phases tell less of the order of their steps than the plan: a
/// rank may send what belongs to a later phase before it has received what belongs to an earlier one.
bool isForAll(const Exchange& exchange, int ranks) {
  std::vector<bool> receives(at(ranks), false);
  for (int r = 0; r < ranks; ++r) {
    const int to = exchange.to(r);
    if (to == r || receives[at(to)]) return false;
    receives[at(to)] = true;
  }
  return true;
}

/// Two take turns by their rounds. In which order a rank serves more is for the plan to say.
int mostTreesOfARank(const TreeExchange& trees, int ranks) {
  std::vector<int> count(at(ranks), 0);
  for (const TreeExchange::Member& member : trees.trees)
    for (int place = 0; place < member.tree->size(); ++place) ++count[at(rankAt(member, place))];
  return *std::ranges::max_element(count);
}

}  // namespace

void PlayPart::add(const Step& step) {
  OneStep& mine = steps.emplace_back();
  mine.blocks = step.blockCount;
  mine.sources = static_cast<int>(step.sources.size());
  for (const Operand& source : step.sources) {
    if (source.kind != Operand::Kind::peer) continue;
    from.push_back(source.index);
    ++mine.receives;
  }
  for (const Operand& destination : step.destinations) {
    if (destination.kind != Operand::Kind::peer) continue;
    sentTo.emplace_back(destination.index, static_cast<int>(to.size()));
    to.push_back(destination.index);
    ++mine.sends;
  }
}

void PlayPart::pass(int blocks, const std::vector<int>& sources, bool combines, const std::vector<int>& destinations) {
  const int count = static_cast<int>(sources.size());
  steps.push_back({blocks, combines ? count + 1 : std::max(1, count), count, static_cast<int>(destinations.size())});
  from.insert(from.end(), sources.begin(), sources.end());
  for (const int destination : destinations) {
    sentTo.emplace_back(destination, static_cast<int>(to.size()));
    to.push_back(destination);
  }
}

void PlayPart::finish() { std::ranges::sort(sentTo); }

int PlayPart::messageTo(int peer, int n) const {
  const auto first = std::ranges::lower_bound(sentTo, std::pair(peer, 0));
  return sentTo.end() - first > n && first[n].first == peer ? first[n].second : -1;
}

std::optional<std::size_t> PhaseParts::stepsOf(const Exchanges& exchanges, int ranks) {
  std::size_t steps = 0;
  for (const Phase& phase : exchanges.phases) {
    if (std::holds_alternative<Copy>(phase)) {
      ++steps;
    } else if (const auto* exchange = std::get_if<Exchange>(&phase)) {
      // Repeated messages of which each rank has others are not told from what they are in turn.
      const bool isTold = exchange->cut ? exchange->repeats == 1 : exchange->messages <= mostMessages;
      if (!isTold || !isForAll(*exchange, ranks)) return std::nullopt;
      steps += 2 * static_cast<std::size_t>(exchange->repeats);
    } else if (const auto* trees = std::get_if<TreeExchange>(&phase)) {
      if (trees->isPerRank || trees->oneByOne || trees->isCutAtRoot || mostTreesOfARank(*trees, ranks) > 2)
        return std::nullopt;
      steps += 2 * static_cast<std::size_t>(trees->messages);
    } else {
      return std::nullopt;
    }
  }
  if (steps > mostSteps) return std::nullopt;
  return steps;
}

PhaseParts::PhaseParts(const Exchanges& exchanges, int ranks)
    : exchanges_(&exchanges), senders_(exchanges.phases.size()), places_(exchanges.phases.size()) {
  for (std::size_t i = 0; i < exchanges.phases.size(); ++i) {
    if (const auto* exchange = std::get_if<Exchange>(&exchanges.phases[i])) {
      senders_[i].assign(at(ranks), -1);
      for (int r = 0; r < ranks; ++r)
        if (const int to = exchange->to(r); to != r) senders_[i][at(to)] = r;
    } else if (const auto* trees = std::get_if<TreeExchange>(&exchanges.phases[i])) {
      places_[i].resize(at(ranks));
      for (const TreeExchange::Member& member : trees->trees)
        for (int place = 0; place < member.tree->size(); ++place)
          places_[i][at(rankAt(member, place))].push_back({&member, place});
    }
  }
}

PlayPart PhaseParts::partOf(int rank) const {
  PlayPart part;
  part.planBlocks = exchanges_->blocks;
  for (std::size_t i = 0; i < exchanges_->phases.size(); ++i) {
    const Phase& phase = exchanges_->phases[i];
    if (const auto* copy = std::get_if<Copy>(&phase)) {
      if (copy->only < 0 || copy->only == rank) part.copy(copy->blocks);
    } else if (const auto* exchange = std::get_if<Exchange>(&phase)) {
      addTo(part, *exchange, senders_[i], rank);
    } else {
      addTo(part, std::get<TreeExchange>(phase), places_[i][at(rank)]);
    }
  }
  part.finish();
  return part;
}

void PhaseParts::addTo(PlayPart& part, const Exchange& exchange, const std::vector<int>& senders, int rank) const {
  const int to = exchange.to(rank), from = senders[at(rank)];
  const MessageCut sent = cutOf(exchange, rank), received = cutOf(exchange, from);
  const auto send = [&](int m) { part.pass(sent.blocks[at(m)], {}, false, {to}); };
  for (int m = 0; m < sent.count; ++m) send(m);
  for (int i = 0; i < exchange.repeats; ++i) {
    const bool isLast = i + 1 == exchange.repeats;
    if (exchange.copiesMeanwhile > 0) part.copy(exchange.copiesMeanwhile);
    for (int m = 0; m < received.count; ++m) {
      const bool goesOn = exchange.flows && !isLast;
      part.pass(received.blocks[at(m)], {from}, exchange.combines, goesOn ? std::vector{to} : std::vector<int>{});
    }
    for (int m = 0; m < sent.count && !exchange.flows && !isLast; ++m) send(m);
  }
}

/// A step for each message, tree and direction, in the order of the rounds in which they come.
void PhaseParts::addTo(PlayPart& part, const TreeExchange& trees, const std::vector<Place>& places) const {
  struct Turn {
    int round;
    const Place* place;
    bool isDown;
  };
  std::vector<Turn> turns;
  for (const Place& place : places) {
    const Tree& tree = *place.member->tree;
    const TreeNode& node = tree.node(place.place);
    const int above = trees.turns ? tree.node(tree.root()).height : 0;
    for (int m = 0; m < trees.messages; ++m) {
      if (!trees.isDown) turns.push_back({m + node.height, &place, false});
      if (trees.isDown || (trees.turns && node.parent >= 0)) turns.push_back({m + above + node.depth, &place, true});
    }
  }
  std::ranges::stable_sort(turns, {}, &Turn::round);
  for (const Turn& turn : turns) {
    const TreeExchange::Member& member = *turn.place->member;
    const TreeNode& node = member.tree->node(turn.place->place);
    std::vector<int> children, parent;
    for (const int child : node.children) children.push_back(rankAt(member, child));
    if (node.parent >= 0) parent.push_back(rankAt(member, node.parent));
    const bool isTop = trees.turns && node.parent < 0;  // what has come up goes down at once
    if (turn.isDown) {
      part.pass(trees.blocks, parent, false, children);
    } else {
      part.pass(trees.blocks, children, trees.combines, isTop ? children : parent);
    }
  }
}

}  // namespace tacc
