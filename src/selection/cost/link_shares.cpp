#include "selection/cost/link_shares.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

namespace tacc {
namespace {

/// Rates that are nearer to each other are the same: they are sums and differences of others.
constexpr double rounding = 1e-9;

constexpr int nothing = -1;

/// Of more messages under way together each gets the least even share of its links: what one leaves would be followed
/// over all links. This many are under way where some twenty ranks all send to all, and most get the same then.
constexpr int mostFollowed = 256;

}  // namespace

LinkShares::LinkShares(const PlayModel& model) : model_(model), links_(model.capacities.size()) {
  for (std::size_t m = 0; m < model.messages.size(); ++m) {
    double alone = model.messages[m].rate;
    for (const auto& [link, messages] : model.crossings.of(static_cast<int>(m)))
      alone = std::min(alone, model.capacities[at(link)] / messages);
    alone_.push_back(alone);
  }
}

void LinkShares::add(int flow, int message) {
  if (at(flow) >= flows_.size()) flows_.resize(at(flow) + 1);
  flows_[at(flow)] = {message, nothing, nothing, 0, 0, true, flows_[at(flow)].isAffected, false};
  affect(flow);
  ++open_;
  for (const auto& [link, messages] : model_.crossings.of(message)) {
    Link& on = links_[at(link)];
    on.flows.push_back({flow, messages});
    on.messages += messages;
    on.demand += messages * alone_[at(message)];
    if (!std::exchange(on.isDirty, true)) dirty_.push_back(link);
  }
}

void LinkShares::remove(int flow) {
  Flow& gone = flows_[at(flow)];
  gone.isOpen = false;
  --open_;
  for (const auto& [link, messages] : model_.crossings.of(gone.message)) {
    Link& on = links_[at(link)];
    *std::ranges::find(on.flows, flow, &Crossing::flow) = on.flows.back();
    on.flows.pop_back();
    on.messages -= messages;
    on.held -= gone.limit == link ? 1 : 0;
    on.demand = on.flows.empty() ? 0 : on.demand - messages * alone_[at(gone.message)];
    on.used = on.flows.empty() ? 0 : on.used - messages * gone.rate;
    if (!std::exchange(on.isDirty, true)) dirty_.push_back(link);
  }
}

bool LinkShares::isAsBefore(const Flow& flow) {
  return flow.next == flow.rate || std::abs(flow.next - flow.rate) <= rounding * flow.rate;
}

/// Whether it gets another rate than before.
bool LinkShares::take(Flow& flow) {
  if (flow.limit != flow.nextLimit) {
    if (flow.limit != nothing) --links_[at(flow.limit)].held;
    if (flow.nextLimit != nothing) ++links_[at(flow.nextLimit)].held;
    flow.limit = flow.nextLimit;
  }
  if (isAsBefore(flow)) return false;
  for (const auto& [link, messages] : model_.crossings.of(flow.message))
    links_[at(link)].used += messages * (flow.next - flow.rate);
  flow.rate = flow.next;
  return true;
}

/// Whether its messages could send more than it carries.
bool LinkShares::isLimit(int link) const {
  return links_[at(link)].demand > (1 + rounding) * model_.capacities[at(link)];
}

void LinkShares::affect(int flow) {
  if (!std::exchange(flows_[at(flow)].isAffected, true)) affected_.push_back(flow);
}

/// Of the messages that are new, and those that a link held back which others cross than before; then of all whose
/// shares are no longer right with these.
double LinkShares::findRates() {
  const bool areEven = model_.crowding != 1 || open_ > mostFollowed;
  for (const int link : dirty_) {
    links_[at(link)].isDirty = false;
    for (const Crossing& one : links_[at(link)].flows)
      if (areEven || flows_[at(one.flow)].limit == link) affect(one.flow);
  }
  dirty_.clear();
  if (areEven) {
    shareEvenly();
    return static_cast<double>(affected_.size());
  }
  std::size_t looked = 0;
  for (std::size_t wider = affected_.size(); wider > 0;) {
    listLinks();
    fill();
    looked += affected_.size();
    const std::size_t before = affected_.size();
    looked += widen();
    wider = affected_.size() - before;
    for (const int link : listed_) links_[at(link)].isListed = false;
    listed_.clear();
  }
  return static_cast<double>(looked);
}

/// The links that may hold back the affected ones, and what others leave there.
void LinkShares::listLinks() {
  for (const int id : affected_) {
    Flow& flow = flows_[at(id)];
    if (!flow.isOpen) continue;
    flow.isFixed = false;
    for (const auto& [number, messages] : model_.crossings.of(flow.message)) {
      if (!isLimit(number)) continue;
      Link& link = links_[at(number)];
      if (!std::exchange(link.isListed, true)) {
        listed_.push_back(number);
        link.affected.clear();
        link.left = model_.capacities[at(number)] - link.used;
        link.open = 0;
        link.others = link.messages;
        link.heldOthers = link.held;
        link.holds = false;
      }
      link.affected.push_back(id);
      link.left += messages * flow.rate;
      link.open += messages;
      link.others -= messages;
      link.heldOthers -= flow.limit == number ? 1 : 0;
    }
  }
}

/// Takes the link whose even share is the least: that is what its messages get, but those that cannot use so much.
/// Shares of the others only grow by that.
void LinkShares::fill() {
  const auto shareOf = [this](int link) { return std::max(0.0, links_[at(link)].left) / links_[at(link)].open; };
  for (const int link : listed_) narrowest_.emplace_back(shareOf(link), link);
  std::ranges::make_heap(narrowest_, std::greater());
  while (!narrowest_.empty()) {
    std::ranges::pop_heap(narrowest_, std::greater());
    const auto [share, number] = narrowest_.back();
    narrowest_.pop_back();
    Link& link = links_[at(number)];
    if (link.open == 0) continue;
    const double now = shareOf(number);
    bool isFull = now <= share * (1 + rounding);
    if (isFull) {
      for (const int id : link.affected) {
        Flow& flow = flows_[at(id)];
        if (flow.isFixed || alone_[at(flow.message)] >= now) continue;
        fix(flow, alone_[at(flow.message)], nothing);
        isFull = false;
      }
    }
    if (isFull) {
      link.holds = true;
      for (const int id : link.affected)
        if (Flow& flow = flows_[at(id)]; !flow.isFixed) fix(flow, now, number);
    } else if (link.open > 0) {
      narrowest_.emplace_back(shareOf(number), number);
      std::ranges::push_heap(narrowest_, std::greater());
    }
  }
  for (const int id : affected_) {
    Flow& flow = flows_[at(id)];
    if (!flow.isOpen || std::exchange(flow.isFixed, true)) continue;
    flow.next = alone_[at(flow.message)];
    flow.nextLimit = nothing;
  }
}

void LinkShares::fix(Flow& flow, double rate, int limit) {
  flow.isFixed = true;
  flow.next = rate;
  flow.nextLimit = limit;
  for (const auto& [number, messages] : model_.crossings.of(flow.message)) {
    Link& link = links_[at(number)];
    if (!link.isListed) continue;
    link.left -= messages * rate;
    link.open -= messages;
  }
}

/// Shares are right if each message that a link holds back gets as much of it as any other there, and nothing is left.
/// Takes in those of which that is not so, and those that get more than one which their link holds back. Returns how
/// many it looked at.
std::size_t LinkShares::widen() {
  std::size_t looked = 0;
  for (const int link : listed_) {
    if (!mayBeWrong(links_[at(link)])) continue;
    widenAt(link);
    looked += links_[at(link)].flows.size();
  }
  return looked;
}

/// Whether others could have to give or get something there. One that something else held back before, or that is new,
/// asks for a share also where it gets nothing more yet.
bool LinkShares::mayBeWrong(const Link& link) const {
  const auto changes = [this](int id) {
    const Flow& flow = flows_[at(id)];
    return flow.rate == 0 || flow.limit != flow.nextLimit || !isAsBefore(flow);
  };
  return link.others > 0 && (link.heldOthers > 0 || link.holds) && std::ranges::any_of(link.affected, changes);
}

void LinkShares::widenAt(int number) {
  const Link& link = links_[at(number)];
  double most = 0, least = std::numeric_limits<double>::infinity();
  for (const Crossing& one : link.flows) {
    const Flow& flow = flows_[at(one.flow)];
    const bool isNew = flow.isAffected && flow.isFixed;
    most = std::max(most, isNew ? flow.next : flow.rate);
    if (isNew && flow.nextLimit == number) least = std::min(least, flow.next);
  }
  const bool isFull = link.left <= rounding * model_.capacities[at(number)];
  for (const Crossing& one : link.flows) {
    const Flow& flow = flows_[at(one.flow)];
    if (flow.isAffected) continue;
    const bool isRight = flow.limit != number || (isFull && flow.rate >= most * (1 - rounding));
    if (!isRight || flow.rate > least * (1 + rounding)) affect(one.flow);
  }
}

/// Each gets the least even share of its links, on which each other message counts for `crowding`, and nothing of what
/// others leave.
void LinkShares::shareEvenly() {
  for (const int id : affected_) {
    Flow& flow = flows_[at(id)];
    if (!flow.isOpen) continue;
    flow.next = model_.messages[at(flow.message)].rate;
    flow.nextLimit = nothing;
    for (const auto& [link, messages] : model_.crossings.of(flow.message)) {
      const double share = model_.capacities[at(link)] / (1 + model_.crowding * (links_[at(link)].messages - 1));
      if (share >= flow.next) continue;
      flow.next = share;
      flow.nextLimit = link;
    }
  }
}

}  // namespace tacc
