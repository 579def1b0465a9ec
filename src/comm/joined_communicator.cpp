#include "comm/joined_communicator.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "comm/call_demands.hpp"
#include "core/error.hpp"
#include "core/exceptions.hpp"
#include "topology/model/digest.hpp"

namespace tacc {
namespace {

constexpr auto causeTime = std::chrono::milliseconds(500);

}  // namespace

std::string_view JoinedCommunicator::wished(Collective collective, const PlanDemands& demands) {
  if (collective == Collective::barrier) return forced_;
  PlanDemands asked = demands;
  // An algorithm and a reproducible communicator that exclude each other are an error.
  if (config().isReproducible) asked.rankOrder = false;
  auto known = served_.find({collective, asked});
  if (known == served_.end()) {
    const bool isServed = serves(*findAlgorithm(forced_), collective, asked);
    known = served_.emplace(std::pair(collective, asked), isServed).first;
  }
  return known->second ? std::string_view(forced_) : std::string_view();
}

std::string_view JoinedCommunicator::steeredByWish(const Call& call) {
  const PlanDemands demands = demandsOf(call, config().isReproducible);
  if (const std::string_view route = wished(call.collective, demands); !route.empty()) return route;
  // What a tuning file says is of plans that meet none.
  if (demands != PlanDemands{}) return {};
  return steered(call.collective, call.count * sizeOf(call.type));
}

JoinedCommunicator::Group JoinedCommunicator::gatherGroup(int color, int key) {
  return groupIn(gatherValues(SplitWish{color, key, rank()}));
}

JoinedCommunicator::Group JoinedCommunicator::groupIn(std::vector<SplitWish> wishes) const {
  const int color = wishes[static_cast<std::size_t>(rank())].color;
  std::erase_if(wishes, [color](const SplitWish& wish) { return wish.color != color; });
  std::ranges::stable_sort(wishes, {}, &SplitWish::key);
  const auto place = std::ranges::find(wishes, rank(), &SplitWish::rank) - wishes.begin();
  std::vector<int> members;
  for (const SplitWish& wish : wishes) members.push_back(wish.rank);
  return {static_cast<int>(place), static_cast<int>(wishes.size()), wishes.front().rank, std::move(members)};
}

JoinedCommunicator::Group JoinedCommunicator::groupOf(std::span<const int> members) const {
  const auto place = std::ranges::find(members, rank()) - members.begin();
  return {static_cast<int>(place), static_cast<int>(members.size()), members.front(), {members.begin(), members.end()}};
}

std::string JoinedCommunicator::namesOf(const Group& group) const {
  std::string names;
  for (const int member : group.members) names += fmt::format("{}{}", names.empty() ? "" : " ", nameOfRank(member));
  return names;
}

/// The lowest rank hears whom the others mean before it answers: answers are as long as the group. Any order of the
/// same ranks has the same lowest one.
void JoinedCommunicator::exchangeAmong(const Group& group, std::span<const std::byte> mine, std::span<std::byte> all) {
  Digest digest;
  for (const int member : group.members) digest.add(static_cast<std::uint64_t>(member));
  const std::uint64_t meant = digest.value();
  std::vector<std::byte> told(sizeof meant + mine.size());
  std::memcpy(told.data(), &meant, sizeof meant);
  std::memcpy(told.data() + sizeof meant, mine.data(), mine.size());
  const int collector = *std::ranges::min_element(group.members);
  if (rank() != collector) {
    const PointToPoint tell{true, collector, told.data(), told.size(), taccUint8};
    const PointToPoint hear{false, collector, all.data(), all.size(), taccUint8};
    exchangeNow(std::array{tell, hear});
    return;
  }
  std::vector<std::byte> heard(group.members.size() * told.size());
  std::vector<PointToPoint> inward, outward;
  for (std::size_t i = 0; i < group.members.size(); ++i) {
    if (group.members[i] == collector) continue;
    inward.push_back({false, group.members[i], heard.data() + i * told.size(), told.size(), taccUint8});
    outward.push_back({true, group.members[i], all.data(), all.size(), taccUint8});
  }
  exchangeNow(inward);
  for (std::size_t i = 0; i < group.members.size(); ++i) {
    const std::byte* const one = group.members[i] == collector ? told.data() : heard.data() + i * told.size();
    if (std::memcmp(one, &meant, sizeof meant) != 0)
      fail(
          taccInvalidUsage,
          "rank {} makes a communicator of the ranks {}, and rank {} one of others, or in another order: the list must "
          "be the same on all of them",
          nameOfRank(rank()), namesOf(group), nameOfRank(group.members[i]));
    std::memcpy(all.data() + i * mine.size(), one + sizeof meant, mine.size());
  }
  exchangeNow(outward);
}

std::unique_ptr<Communicator> JoinedCommunicator::joinPart(const taccUniqueId& id, int ranks, int newRank,
                                                           const CommConfig& config,
                                                           const std::function<void()>& watch) {
  try {
    return join(id, ranks, newRank, config, {}, watch, true);
  } catch (...) {
    const Error error = errorOf(std::current_exception(), rank(), [] { return std::string("making a part"); });
    if (isOwnTrouble(error)) failWith(error);
    // A rank that fails so tells its own parent: there is the cause; the end of a connection is its consequence.
    if (error.result() == taccRemoteError)
      for (const auto begin = std::chrono::steady_clock::now(); std::chrono::steady_clock::now() - begin < causeTime;) {
        watch();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    throw Error(error);
  }
}

std::string JoinedCommunicator::describeTuned(const TunedSize& measured) const {
  std::string text = fmt::format("-> {:22} {:>11.1f} us  tuning file {}: the fastest of those measured with {} bytes",
                                 measured.algorithm, measured.seconds * 1e6, tuning_->origin, measured.bytes);
  if (!measured.next.empty()) text += fmt::format("; {} took {:.1f} us", measured.next, measured.nextSeconds * 1e6);
  return text + "\n";
}

}  // namespace tacc
