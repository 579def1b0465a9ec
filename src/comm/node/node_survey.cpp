#include "comm/node/node_survey.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <utility>

#include "transports/shm/cpu_relax.hpp"

namespace tacc {
namespace {

using SurveyClock = std::chrono::steady_clock;

constexpr std::size_t mostBytes = 512 * 1024;
constexpr int roundTrips = 200, trialTrips = 20;
constexpr auto answerPatience = std::chrono::milliseconds(20);  // for one answer: then somebody else has the core

double secondsFrom(SurveyClock::time_point begin) {
  return std::chrono::duration<double>(SurveyClock::now() - begin).count();
}

/// First and last + 1 place of the group at a level of the places; of one level more the whole host; of -1 the place.
std::pair<int, int> groupAround(const NodePlaces& places, int level, int place) {
  if (level < 0) return {place, place + 1};
  const int all = static_cast<int>(places.order.size());
  if (level >= static_cast<int>(places.levels.size())) return {0, all};
  const std::vector<int>& begins = places.levels[static_cast<std::size_t>(level)].begins;
  const auto next = std::ranges::upper_bound(begins, place);
  return {*(next - 1), next == begins.end() ? all : *next};
}

class PairTimes {
 public:
  PairTimes(Bootstrap& bootstrap, const NodeSegment& segment, const NodePlaces& places, int rank)
      : bootstrap_(bootstrap),
        segment_(segment),
        places_(places),
        rank_(rank),
        place_(static_cast<int>(std::ranges::find(places.order, rank) - places.order.begin())),
        bytes_(std::min(mostBytes, segment.geometry().arenaBytes)),
        own_(bytes_, std::byte{1}) {}

  NodeSamples run() {
    NodeSamples samples{};
    const int tiers = std::min(static_cast<int>(places_.levels.size()) + 1, NodeSamples::mostTiers);
    samples.ownCopy = copyFrom(place_, true);
    for (int tier = 0; tier < tiers; ++tier) {
      NodeSamples::Tier& mine = samples.tiers[static_cast<std::size_t>(tier)];
      const int partner = partnerAt(places_, tier, place_);
      int first = 0;  // whose copy is taken alone
      while (first + 1 < static_cast<int>(places_.order.size()) && partnerAt(places_, tier, first) == first) ++first;
      mine.alone = copyFrom(partner, place_ == first);
      mine.together = copyFrom(partner, partner != place_);
      mine.latency = pingPong(first, partnerAt(places_, tier, first));
    }
    std::memset(segment_.arena(rank_), 0, bytes_);
    meet();
    return samples;
  }

 private:
  void meet() { (void)bootstrap_.gatherValues(char{1}); }
  int rankAt(int place) const { return places_.order[static_cast<std::size_t>(place)]; }

  /// Bytes/s; 0 where this rank does not take part. What is read was just written by its owner, as slots are.
  double copyFrom(int place, bool takesPart) {
    std::memset(segment_.arena(rank_), 2, bytes_);
    meet();
    double rate = 0;
    if (takesPart) {
      const SurveyClock::time_point begin = SurveyClock::now();
      std::memcpy(own_.data(), segment_.arena(rankAt(place)), bytes_);
      rate = static_cast<double>(bytes_) / std::max(secondsFrom(begin), 1e-9);
    }
    meet();
    return rate;
  }

  std::atomic<std::uint32_t>& word(int place) const {
    return *reinterpret_cast<std::atomic<std::uint32_t>*>(segment_.arena(rankAt(place)));
  }

  /// Seconds of one way between the two places, on both; 0 elsewhere, and where one does not answer.
  double pingPong(int first, int second) {
    word(place_).store(0, std::memory_order_relaxed);
    meet();
    double seconds = 0;
    if (first != second && (place_ == first || place_ == second)) {
      const int other = place_ == first ? second : first;
      SurveyClock::time_point begin = SurveyClock::now();
      for (std::uint32_t trip = 1; trip <= roundTrips + trialTrips; ++trip) {
        if (trip == trialTrips + 1) begin = SurveyClock::now();
        if (place_ == first) word(place_).store(trip, std::memory_order_release);
        if (!await(other, trip)) {
          meet();
          return 0;
        }
        if (place_ == second) word(place_).store(trip, std::memory_order_release);
      }
      seconds = secondsFrom(begin) / (2 * roundTrips);
    }
    meet();
    return seconds;
  }

  bool await(int place, std::uint32_t value) const {
    const SurveyClock::time_point begin = SurveyClock::now();
    for (int looks = 1; word(place).load(std::memory_order_acquire) != value; ++looks) {
      relaxCpu();
      if (looks % 256 == 0 && SurveyClock::now() - begin > answerPatience) return false;
    }
    return true;
  }

  Bootstrap& bootstrap_;
  const NodeSegment& segment_;
  const NodePlaces& places_;
  int rank_, place_;
  std::size_t bytes_;
  std::vector<std::byte> own_;
};

double least(double a, double b) { return a == 0 || (b > 0 && b < a) ? b : a; }

}  // namespace

int partnerAt(const NodePlaces& places, int tier, int place) {
  const auto [begin, end] = groupAround(places, tier, place);
  const auto [innerBegin, innerEnd] = groupAround(places, tier - 1, place);
  if (innerBegin == begin && innerEnd == end) return place;
  const int nextBegin = innerEnd == end ? begin : innerEnd;
  const auto [first, last] = groupAround(places, tier - 1, nextBegin);
  return first + (place - innerBegin) % (last - first);
}

NodeFigures figuresOf(const std::vector<NodeSamples>& samples, const NodePlaces& places) {
  NodeFigures figures = assumedFigures(places);
  const auto of = [&](int place) -> const NodeSamples& {
    return samples[static_cast<std::size_t>(places.order[static_cast<std::size_t>(place)])];
  };
  const int ranks = static_cast<int>(places.order.size());
  double own = 0;
  for (int place = 0; place < ranks; ++place) own = std::max(own, of(place).ownCopy);
  if (own > 0) figures.ownCopy = own;
  const int tiers = std::min(static_cast<int>(figures.tiers.size()), NodeSamples::mostTiers);
  for (int tier = 0; tier < tiers; ++tier) {
    TierFigures& mine = figures.tiers[static_cast<std::size_t>(tier)];
    double latency = 0, alone = 0;
    for (int place = 0; place < ranks; ++place) {
      const NodeSamples::Tier& sample = of(place).tiers[static_cast<std::size_t>(tier)];
      latency = least(latency, sample.latency);
      alone = std::max(alone, sample.alone);
    }
    if (latency > 0) mine.latency = latency;
    if (alone > 0) mine.copy = std::min(alone, figures.ownCopy);
    if (tier == 0) continue;
    // Of the groups inside, whose ranks all read from outside at once, the slowest.
    double uplink = 0;
    for (int begin = 0; begin < ranks;) {
      const auto [first, last] = groupAround(places, tier - 1, begin);
      double together = 0;
      for (int place = first; place < last; ++place)
        together += of(place).tiers[static_cast<std::size_t>(tier)].together;
      uplink = least(uplink, together);
      begin = last;
    }
    if (uplink > 0) figures.tiers[static_cast<std::size_t>(tier) - 1].uplink = std::max(uplink, mine.copy);
  }
  figures.isMeasured = own > 0;
  return figures;
}

NodeFigures figuresOfPart(const NodePlaces& whole, const NodeFigures& figures, const NodePlaces& part,
                          const std::vector<int>& members) {
  NodeFigures known = assumedFigures(part);
  if (part.isFlat() || whole.isFlat()) return known;
  constexpr double anyCache = 1;
  const NodeMachine wholeMachine(whole, figures, anyCache), partMachine(part, known, anyCache);
  std::vector<int> placeInWhole(whole.order.size());
  for (std::size_t place = 0; place < whole.order.size(); ++place)
    placeInWhole[static_cast<std::size_t>(whole.order[place])] = static_cast<int>(place);
  const int ranks = static_cast<int>(members.size());
  std::vector<int> tierInWhole(known.tiers.size(), -1);
  const auto inWhole = [&](int place) {
    const int rank = part.order[static_cast<std::size_t>(place)];
    return placeInWhole[static_cast<std::size_t>(members[static_cast<std::size_t>(rank)])];
  };
  for (int a = 0; a < ranks; ++a)
    for (int b = a + 1; b < ranks; ++b) {
      int& tier = tierInWhole[static_cast<std::size_t>(partMachine.meet(a, b))];
      tier = std::max(tier, wholeMachine.meet(inWhole(a), inWhole(b)));
    }
  for (std::size_t tier = 0; tier < tierInWhole.size(); ++tier)
    if (tierInWhole[tier] >= 0) known.tiers[tier] = figures.tiers[static_cast<std::size_t>(tierInWhole[tier])];
  known.ownCopy = figures.ownCopy;
  known.memory = figures.memory;
  known.isMeasured = figures.isMeasured;
  return known;
}

NodeFigures measureNode(Bootstrap& bootstrap, const NodeSegment& segment, const NodePlaces& places, int rank,
                        bool isOversubscribed) {
  if (places.isFlat() || isOversubscribed) return assumedFigures(places);
  return figuresOf(bootstrap.gatherValues(PairTimes(bootstrap, segment, places, rank).run()), places);
}

}  // namespace tacc
