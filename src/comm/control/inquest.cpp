#include "comm/control/inquest.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>

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

std::string describePairs(const std::vector<RankIdentity>& who, const std::vector<std::pair<int, int>>& pairs) {
  std::string text;
  for (std::size_t i = 0; i < std::min(pairs.size(), shown); ++i)
    text += fmt::format("{}between {} and {}", i == 0 ? "" : ", ", describeRank(who, pairs[i].first),
                        describeRank(who, pairs[i].second));
  return pairs.size() > shown ? text + " and more pairs of hosts" : text;
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

void Inquest::hear(int rank, RankState state) { heard_[static_cast<std::size_t>(rank)] = std::move(state); }

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

/// No other host has shown that it lives: its ranks are silent, and its kernel is. One host alone is as likely cut off
/// as rank 0's own, also where it is that of a gateway, which keeps back what those behind it say.
bool Inquest::isCutOff(const std::vector<RankIdentity>& who, const std::vector<int>& silent,
                       const std::vector<int>& unconfirmed) const {
  const auto hostOf = [&](int rank) { return who[static_cast<std::size_t>(rank)].host; };
  for (std::size_t rank = 0; rank < who.size(); ++rank)
    if (who[rank].host != who[0].host && (answers_[rank] || heard_[rank])) return false;
  std::vector<int> others;
  std::ranges::copy_if(silent, std::back_inserter(others), [&](int rank) { return hostOf(rank) != hostOf(0); });
  const bool areSeveral = std::ranges::any_of(others, [&](int rank) { return hostOf(rank) != hostOf(others.front()); });
  return areSeveral && std::ranges::all_of(
                           others, [&](int rank) { return std::ranges::find(unconfirmed, rank) != unconfirmed.end(); });
}

std::string Inquest::blame(const std::vector<RankIdentity>& who, const std::vector<int>& silent,
                           const std::vector<int>& unconfirmed) const {
  const bool cutOff = isCutOff(who, silent, unconfirmed);
  std::vector<int> beyond, heard, unheard;
  for (const int rank : silent) {
    const auto n = static_cast<std::size_t>(rank);
    (cutOff && who[n].host != who[0].host ? beyond : heard_[n] ? heard : unheard).push_back(rank);
  }
  std::vector<std::string> sentences;
  if (!beyond.empty())
    sentences.push_back(
        fmt::format("{} sends in vain: its host is cut off from the network, or all others are; no kernel confirms "
                    "what is sent to {}",
                    describeRank(who, 0), describeRanks(who, beyond)));
  if (!heard.empty())
    sentences.push_back(
        fmt::format("{} told that it waits, and did not answer within {} s: stopped since, or it has gone on and is "
                    "not inside a tacc call, or what is sent to its host is lost, though what it sends arrives",
                    describeRanks(who, heard), answerSeconds));
  if (!unheard.empty())
    sentences.push_back(
        fmt::format("{} did not answer within {} s: stopped, cut off from the network, or not inside a tacc call",
                    describeRanks(who, unheard), answerSeconds));
  return fmt::format("{}", fmt::join(sentences, "; "));
}

/// One pair of ranks for each pair of hosts; one pair more than are shown, if there are more.
std::vector<std::pair<int, int>> Inquest::lostPairs(const std::vector<RankIdentity>& who) const {
  std::vector<std::pair<int, int>> pairs;
  const auto hostOf = [&](int rank) { return who[static_cast<std::size_t>(rank)].host; };
  for (std::size_t rank = 0; rank < answers_.size(); ++rank) {
    for (const int other : answers_[rank]->unreached) {
      const int self = static_cast<int>(rank), low = std::min(self, other), high = std::max(self, other);
      const bool isKnown = std::ranges::any_of(pairs, [&](const auto& pair) {
        return (hostOf(pair.first) == hostOf(low) && hostOf(pair.second) == hostOf(high)) ||
               (hostOf(pair.first) == hostOf(high) && hostOf(pair.second) == hostOf(low));
      });
      if (!isKnown) pairs.emplace_back(low, high);
      if (pairs.size() > shown) return pairs;
    }
  }
  return pairs;
}

std::string Inquest::verdict(const std::vector<RankIdentity>& who, const std::vector<int>& parents,
                             const std::vector<int>& unconfirmed, RankState own) {
  answer(0, std::move(own));
  std::string doing;
  std::size_t answered = 0, heard = 0;  // those who are named are listed, however many have answered
  for (std::size_t rank = 0; rank < answers_.size(); ++rank) {
    const auto& state = answers_[rank] ? answers_[rank] : heard_[rank];
    if (state && (answers_[rank] ? answered : heard)++ < shown)
      doing += fmt::format("{}rank {} {}", doing.empty() ? "" : "; ", rank, state->doing);
  }
  const std::vector<int> silent = silentRanks(parents);
  if (!silent.empty()) return fmt::format("{}; meanwhile {}", blame(who, silent, unconfirmed), doing);
  const auto lost = lostPairs(who);
  if (lost.empty()) return fmt::format("no rank gets on, though all answer: {}", doing);
  return fmt::format("no rank gets on, though all answer: the network loses what is sent {} (cable, firewall, MTU); {}",
                     describePairs(who, lost), doing);
}

}  // namespace tacc
