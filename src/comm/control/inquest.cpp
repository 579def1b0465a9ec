#include "comm/control/inquest.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "comm/control/failure.hpp"
#include "core/error.hpp"

namespace tacc {
namespace {

/// How long ranks have to answer: they look several times a second when they wait.
constexpr double answerSeconds = 0.4;
constexpr std::size_t shown = 4;  // of anything, in a verdict

std::string describeRank(const std::vector<RankIdentity>& who, int rank) {
  return fmt::format("rank {} ({})", rank, who[static_cast<std::size_t>(rank)].describe());
}

std::string describeRanks(const std::vector<RankIdentity>& who, const std::vector<int>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < std::min(ranks.size(), shown); ++i)
    text += (text.empty() ? "" : ", ") + describeRank(who, ranks[i]);
  return ranks.size() > shown ? fmt::format("{} and {} more", text, ranks.size() - shown) : text;
}

}  // namespace

Payload payloadOfState(int rank, const RankState& state) {
  std::vector<std::int32_t> numbers{rank, static_cast<std::int32_t>(state.unreached.size())};
  numbers.insert(numbers.end(), state.unreached.begin(), state.unreached.end());
  const std::size_t head = numbers.size() * sizeof(std::int32_t);
  std::vector<std::byte> bytes(head + state.doing.size());
  std::memcpy(bytes.data(), numbers.data(), head);
  std::copy_n(reinterpret_cast<const std::byte*>(state.doing.data()), state.doing.size(),
              bytes.begin() + static_cast<std::ptrdiff_t>(head));
  return makePayload(std::move(bytes));
}

RankState stateIn(std::span<const std::byte> bytes, std::size_t ranks) {
  std::int32_t number = 0;
  const auto take = [&] {
    if (bytes.size() < sizeof number) return false;
    std::memcpy(&number, bytes.data(), sizeof number);
    bytes = bytes.subspan(sizeof number);
    return true;
  };
  std::vector<int> unreached;
  if (take())
    for (std::int32_t left = number; left > 0 && take(); --left)
      if (number >= 0 && static_cast<std::size_t>(number) < ranks) unreached.push_back(number);
  return {textFrom(bytes), std::move(unreached)};
}

Inquest::Inquest(std::size_t ranks) : deadline_(answerSeconds), answers_(ranks), heard_(ranks) {}

void Inquest::answer(int rank, RankState state) { answers_[static_cast<std::size_t>(rank)] = std::move(state); }

void Inquest::hear(int rank) { heard_[static_cast<std::size_t>(rank)] = true; }

bool Inquest::isOver() const {
  return deadline_.passed() ||
         std::all_of(answers_.begin() + 1, answers_.end(), [](const auto& answer) { return answer.has_value(); });
}

/// A gateway that does not answer keeps back what those behind it say.
std::vector<int> Inquest::silentRanks(const std::vector<int>& parents) const {
  std::vector<int> silent;
  for (std::size_t rank = 0; rank < answers_.size(); ++rank) {
    if (answers_[rank]) continue;
    bool isKeptBack = false;
    for (int parent = parents[rank]; parent > 0; parent = parents[static_cast<std::size_t>(parent)])
      isKeptBack = isKeptBack || !answers_[static_cast<std::size_t>(parent)];
    if (!isKeptBack) silent.push_back(static_cast<int>(rank));
  }
  return silent;
}

std::string Inquest::blame(const std::vector<RankIdentity>& who, const std::vector<int>& silent) const {
  const auto hostOf = [&](int rank) { return who[static_cast<std::size_t>(rank)].host; };
  const auto isElsewhere = [&](int rank) { return hostOf(rank) != hostOf(0); };
  bool isAlone = true;
  for (int rank = 0; rank < static_cast<int>(who.size()); ++rank) {
    const auto n = static_cast<std::size_t>(rank);
    isAlone = isAlone && !(isElsewhere(rank) && (answers_[n] || heard_[n]));
  }
  // Several others, of which none keeps back what another says, are less often cut off than the one host of rank 0.
  const auto one = std::ranges::find_if(silent, isElsewhere);
  const bool areSeveral = one != silent.end() && std::any_of(one, silent.end(), [&](int rank) {
                            return isElsewhere(rank) && hostOf(rank) != hostOf(*one);
                          });
  if (isAlone && areSeveral)
    return fmt::format(
        "{} got no answer from any other host within {} s: its own is cut off from the network, or all others "
        "are stopped or not inside a tacc call: {}",
        describeRank(who, 0), answerSeconds, describeRanks(who, silent));
  if (std::ranges::all_of(silent, [this](int rank) { return heard_[static_cast<std::size_t>(rank)]; }))
    return fmt::format(
        "{} told that it waits, and did not answer within {} s: stopped since, or what is sent to its host is "
        "lost, though what it sends arrives",
        describeRanks(who, silent), answerSeconds);
  return fmt::format("{} did not answer within {} s: stopped, cut off from the network, or not inside a tacc call",
                     describeRanks(who, silent), answerSeconds);
}

/// One pair of ranks for each pair of hosts, and no more pairs than are shown; "" if there is none.
std::string Inquest::lostPairs(const std::vector<RankIdentity>& who) const {
  std::vector<std::pair<int, int>> pairs;
  const auto hostOf = [&](int rank) { return who[static_cast<std::size_t>(rank)].host; };
  for (std::size_t rank = 0; rank < answers_.size(); ++rank) {
    for (const int other : answers_[rank]->unreached) {
      const int self = static_cast<int>(rank), low = std::min(self, other), high = std::max(self, other);
      const bool isKnown = std::ranges::any_of(pairs, [&](const auto& pair) {
        return (hostOf(pair.first) == hostOf(low) && hostOf(pair.second) == hostOf(high)) ||
               (hostOf(pair.first) == hostOf(high) && hostOf(pair.second) == hostOf(low));
      });
      if (!isKnown && pairs.size() <= shown) pairs.emplace_back(low, high);
    }
  }
  std::string text;
  for (std::size_t i = 0; i < std::min(pairs.size(), shown); ++i)
    text += fmt::format("{}between {} and {}", i == 0 ? "" : ", ", describeRank(who, pairs[i].first),
                        describeRank(who, pairs[i].second));
  return pairs.size() > shown ? text + " and more pairs of hosts" : text;
}

std::string Inquest::verdict(const std::vector<RankIdentity>& who, const std::vector<int>& parents, RankState own) {
  answer(0, std::move(own));
  std::string doing;
  std::size_t count = 0;
  for (std::size_t rank = 0; rank < answers_.size(); ++rank)
    if (answers_[rank] && count++ < shown)
      doing += fmt::format("{}rank {} {}", doing.empty() ? "" : "; ", rank, answers_[rank]->doing);
  const std::vector<int> silent = silentRanks(parents);
  if (!silent.empty()) return fmt::format("{}; meanwhile {}", blame(who, silent), doing);
  const std::string lost = lostPairs(who);
  if (lost.empty()) return fmt::format("no rank gets on, though all answer: {}", doing);
  return fmt::format("no rank gets on, though all answer: the network loses what is sent {} (cable, firewall, MTU); {}",
                     lost, doing);
}

}  // namespace tacc
