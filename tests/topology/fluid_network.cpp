#include "fluid_network.hpp"

#include <algorithm>
#include <limits>

#include "topology/probe/steady_rate.hpp"

namespace tacc::test {

std::size_t FluidNetwork::meet(ProbePair pair) const {
  std::size_t level = 0;
  while (level < groupOf.size() && groupOf[level][pair.a] != groupOf[level][pair.b]) ++level;
  return level;
}

/// All rates grow alike, each by its weight, until a link is full; what passes it stands still from then on. When a
/// message has arrived, the others share anew.
std::vector<std::vector<FluidRounds::Stretch>> FluidRounds::play(const FluidNetwork& network,
                                                                 const std::vector<ProbePair>& pairs,
                                                                 const std::vector<double>& weights,
                                                                 const std::vector<double>& bytes) {
  struct Link {
    double capacity;
    std::vector<std::size_t> pairs;
  };
  std::map<std::pair<std::size_t, std::uint32_t>, Link> byPlace;  // level above the hosts, group; hosts: level 0
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    for (const std::uint32_t host : {pairs[i].a, pairs[i].b}) {
      Link& own = byPlace[{0, host}];
      own.capacity = network.links[host];
      own.pairs.push_back(i);
      for (std::size_t level = 0; level < network.meet(pairs[i]); ++level) {
        const std::uint32_t group = network.groupOf[level][host];
        Link& up = byPlace[{level + 1, group}];
        up.capacity = network.uplinks[level][group];
        up.pairs.push_back(i);
      }
    }
  }
  std::vector<double> left = bytes;
  std::vector<std::vector<Stretch>> result(pairs.size());
  double time = 0;
  for (std::size_t done = 0; done < pairs.size();) {
    std::vector<double> rate(pairs.size(), -1);
    for (;;) {
      double height = std::numeric_limits<double>::infinity();
      const Link* full = nullptr;
      for (const auto& [place, link] : byPlace) {
        double free = link.capacity, growing = 0;
        for (const std::size_t i : link.pairs) {
          if (left[i] <= 0) continue;
          if (rate[i] >= 0)
            free -= rate[i];
          else
            growing += weights[i];
        }
        if (growing == 0 || free / growing >= height) continue;
        height = free / growing;
        full = &link;
      }
      if (full == nullptr) break;
      for (const std::size_t i : full->pairs)
        if (left[i] > 0 && rate[i] < 0) rate[i] = std::max(height, 1.0) * weights[i];
    }
    double step = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < pairs.size(); ++i)
      if (left[i] > 0) step = std::min(step, left[i] / rate[i]);
    time += step;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      if (left[i] <= 0) continue;
      left[i] -= step * rate[i];
      result[i].push_back({time, rate[i]});
      if (left[i] > 1e-9 * bytes[i]) continue;
      left[i] = 0;
      ++done;
    }
  }
  return result;
}

double FluidRounds::watch(const std::vector<Stretch>& stretches, double bytes) {
  if (disturbances_.bucket == 0 && disturbances_.late == 0) return bytes / stretches.back().until;
  constexpr double piece = 64 * 1024;
  const auto pieces = static_cast<std::size_t>(bytes / piece);
  std::vector<double> came;
  double start = 0, passed = disturbances_.bucket;
  for (const Stretch& stretch : stretches) {
    const double more = (stretch.until - start) * stretch.rate;
    for (double next;
         next = static_cast<double>(came.size() + 1) * piece, next <= passed + more && came.size() < pieces;)
      came.push_back(start + std::max(next - passed, 0.0) / stretch.rate);
    passed += more;
    start = stretch.until;
  }
  SteadyRate rate(pieces, 2);
  std::exponential_distribution<double> late(1 / std::max(disturbances_.late, 1e-12));
  for (std::size_t seen = 0; seen < came.size();) {
    const double now = came[seen] + late(random_);
    while (seen < came.size() && came[seen] <= now) ++seen;
    rate.saw(seen, now);
  }
  return rate.perSecond() * piece;
}

std::vector<double> FluidRounds::measure(const ProbeRound& round) {
  std::vector<double> weights;
  for (std::size_t i = 0; i < round.pairs.size(); ++i) weights.push_back(noise(disturbances_.unfairness));
  const std::vector<double> bytes(round.bytes.begin(), round.bytes.end());
  const auto played = play(network_, round.pairs, weights, bytes);
  std::vector<double> rates;
  for (std::size_t i = 0; i < round.pairs.size(); ++i) rates.push_back(watch(played[i], bytes[i]));
  return rates;
}

std::vector<ProbeSample> FluidRounds::run(const ProbeRound& round) {
  const std::vector<double> there = measure(round);
  const bool areTimed = disturbances_.bucket > 0 || disturbances_.late > 0;
  const std::vector<double> back = areTimed && round.kind == ProbeKind::survey ? measure(round) : there;
  std::vector<ProbeSample> samples;
  for (std::size_t i = 0; i < round.pairs.size(); ++i) {
    const ProbePair& pair = round.pairs[i];
    ProbeSample sample{network_.latencies[network_.meet(pair)] * noise(disturbances_.latencies),
                       std::sqrt(there[i] * back[i]) * noise(disturbances_.rates)};
    if (uniform(0, 1) < disturbances_.sleeps) sample.latency *= 10;
    if (uniform(0, 1) < disturbances_.busy) sample.bandwidth *= uniform(0.5, 1);
    if (met_.insert(std::minmax(pair.a, pair.b)).second) sample.bandwidth *= disturbances_.cold;
    if (uniform(0, 1) < disturbances_.holes) sample = {};
    samples.push_back(sample);
  }
  return samples;
}

bool isTree(const Topology& network) {
  for (int level = 1; level < network.levels(); ++level)
    if (network.level(level).wiring != Wiring::tree) return false;
  return true;
}

FluidNetwork fluidOf(const Topology& network) {
  constexpr double noLimit = 1e15;
  FluidNetwork result;
  for (std::uint32_t host = 0; host < network.hosts(); ++host)
    result.links.push_back(network.uplink(0, host).value_or(noLimit));
  for (int level = 1; level < network.levels(); ++level) {
    result.latencies.push_back(network.level(level).alpha.value_or(0));
    if (level == network.root()) break;
    auto& groups = result.groupOf.emplace_back();
    for (std::uint32_t host = 0; host < network.hosts(); ++host) groups.push_back(network.groupOf(level, host));
    auto& uplinks = result.uplinks.emplace_back();
    for (std::uint32_t group = 0; group < network.groups(level); ++group)
      uplinks.push_back(network.uplink(level, group).value_or(noLimit));
  }
  return result;
}

Topology surveyed(const Topology& network, const Disturbances& disturbances, unsigned seed, int* rounds) {
  const FluidNetwork truth = fluidOf(network);
  FluidRounds measured(truth, disturbances, seed);
  ProbeSession session(network.hosts(), {},
                       {*std::ranges::min_element(truth.links), *std::ranges::max_element(truth.links)});
  while (const auto round = session.next()) {
    session.record(*round, measured.run(*round));
    if (rounds != nullptr) ++*rounds;
  }
  return session.topology(network.hostNames());
}

}  // namespace tacc::test
