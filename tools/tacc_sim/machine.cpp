#include "machine.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "core/error.hpp"
#include "selection/message_size.hpp"

namespace tacc::sim {
namespace {

std::vector<std::uint32_t> firstHosts(const Topology& topology, int ranks, int ranksPerHost) {
  if (topology.hosts() < 2) fail(taccInvalidArgument, "a simulated machine needs two hosts, not {}", topology.hosts());
  if (ranksPerHost < 1 || ranks <= ranksPerHost) {
    fail(taccInvalidArgument, "a simulated machine needs ranks on two hosts: {} ranks, {} a host, are on one", ranks,
         ranksPerHost);
  }
  const auto wanted = static_cast<std::uint32_t>((ranks + ranksPerHost - 1) / ranksPerHost);
  std::vector<std::uint32_t> hosts(std::min(topology.hosts(), wanted));
  std::iota(hosts.begin(), hosts.end(), 0u);
  return hosts;
}

/// `hosts`: in the order of the topology.
std::vector<std::uint32_t> placed(const Topology& topology, std::vector<std::uint32_t> hosts, Place place) {
  if (place == Place::random) {
    std::mt19937 random(1);
    for (std::size_t i = hosts.size(); i > 1; --i) std::swap(hosts[i - 1], hosts[random() % i]);
  }
  if (place != Place::cyclic) return hosts;
  int level = topology.root() - 1;
  while (level > 0 && topology.groupOf(level, hosts.front()) == topology.groupOf(level, hosts.back())) --level;
  std::vector<std::vector<std::uint32_t>> groups;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (i == 0 || topology.groupOf(level, hosts[i]) != topology.groupOf(level, hosts[i - 1])) groups.emplace_back();
    groups.back().push_back(hosts[i]);
  }
  std::vector<std::uint32_t> dealt;
  for (std::size_t turn = 0; dealt.size() < hosts.size(); ++turn)
    for (const std::vector<std::uint32_t>& group : groups)
      if (turn < group.size()) dealt.push_back(group[turn]);
  return dealt;
}

/// The host of every rank.
std::vector<std::uint32_t> filled(const std::vector<std::uint32_t>& hosts, int ranks, int ranksPerHost) {
  std::vector<std::uint32_t> all;
  for (const std::uint32_t host : hosts)
    for (int local = 0; local < ranksPerHost && static_cast<int>(all.size()) < ranks; ++local) all.push_back(host);
  return all;
}

/// Each host once, in the order of the topology.
std::vector<std::uint32_t> sorted(std::vector<std::uint32_t> hosts) {
  std::ranges::sort(hosts);
  const auto repeated = std::ranges::unique(hosts);
  hosts.erase(repeated.begin(), repeated.end());
  return hosts;
}

NetworkSpeed speedOf(const Topology& topology, const std::vector<std::uint32_t>& ranks, const NetworkSpeed& fallback) {
  const std::vector<std::uint32_t> hosts = sorted(ranks);
  Links links(topology, fallback);
  NetworkSpeed speed{0, 1e30};
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const Route route = links.route(hosts[i], hosts[(i + 1) % hosts.size()]);
    speed.latency = std::max(speed.latency, route.latency);
    speed.bytesPerSecond = std::min(speed.bytesPerSecond, route.bytesPerSecond);
    for (const int link : route.links)
      speed.bytesPerSecond =
          std::min(speed.bytesPerSecond, links.links()[static_cast<std::size_t>(link)].bytesPerSecond);
  }
  return speed;
}

CostMachine machineOf(const Topology& topology, const std::vector<std::uint32_t>& ranks, const NetworkSpeed& speed) {
  std::vector<std::string> names;
  std::vector<int> ranksOf;
  std::map<std::uint32_t, int> ranksAt;
  for (const std::uint32_t host : ranks) ++ranksAt[host];
  for (const auto& [host, count] : ranksAt) {
    names.push_back(topology.host(host));
    ranksOf.push_back(count);
  }
  CostMachine machine = costMachineOf(topology, names, ranksOf, speed);
  if (machine.ranks > static_cast<int>(names.size())) joinInMemory(machine, topology.level(0));
  return machine;
}

}  // namespace

Machine::Machine(Topology topology, int ranks, Place place, const NetworkSpeed& fallback, int ranksPerHost)
    : topology_(std::move(topology)),
      fallback_(fallback),
      ranksPerHost_(ranksPerHost),
      hosts_(filled(placed(topology_, firstHosts(topology_, ranks, ranksPerHost), place), ranks, ranksPerHost)),
      speed_(speedOf(topology_, hosts_, fallback)),
      selector_(machineOf(topology_, hosts_, speed_)) {}

Stage Machine::stage() const {
  const CostMachine& machine = selector_.machine();
  Stage stage{topology_, fallback_, hosts_, machine.gamma, machine.overhead};
  if (ranksPerHost_ == 1) return stage;
  const CostLevel& memory = machine.levels.front();
  stage.memory = {memory.alpha, 1 / memory.beta};
  stage.memoryOverhead = memory.overhead;
  stage.port = CostMap(machine).port();  // where many ranks share a card, it is the core that copies
  return stage;
}

std::vector<int> Machine::levels() const {
  std::set<int> levels;
  for (const std::uint32_t a : hosts_) levels.insert(topology_.meet(a, hosts_.front()));
  for (std::size_t i = 1; i < hosts_.size(); ++i) levels.insert(topology_.meet(hosts_[i - 1], hosts_[i]));
  levels.erase(0);
  return {levels.begin(), levels.end()};
}

CostCall Machine::cut(Collective collective, double bytes, int blocks) const {
  const bool split = partitionOf(collective) == Partition::split;
  CostCall call;
  call.bytes = split ? bytes : bytes / ranks();
  call.chunkBytes = static_cast<double>(selector_.messageBytes(collective, static_cast<std::size_t>(call.bytes))) *
                    (split ? blocks : 1);
  return call;
}

}  // namespace tacc::sim
