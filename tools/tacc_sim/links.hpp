// The links of a machine as its topology tells them, and the route of a message over them. Knows no simulator.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "selection/cost/network_speed.hpp"
#include "topology/model/topology.hpp"

namespace tacc::sim {

/// One direction of a cable, or of what the members of a group share to the outside.
struct Link {
  std::string name;
  double bytesPerSecond;
};

/// Of a message between two hosts.
struct Route {
  std::vector<int> links;     // in the order in which it crosses them
  int level = 0;              // at which the hosts meet
  double latency = 0;         // seconds
  double bytesPerSecond = 0;  // of one stream alone
};

/// Links are made when the first route needs them, so a part of a large machine costs what the part has.
///
/// A route goes through the card of the host, the uplinks of its groups up to where the hosts meet, there over the
/// links of a torus (dimension by dimension) or of an all-to-all (the direct one), and down again.
class Links {
 public:
  /// `speed` stands for what the topology does not say. As the cost model has it: of a card that no figure is known of,
  /// the fastest stream of the levels, and of a stream, the fastest card, so that only links limit it.
  Links(const Topology& topology, const NetworkSpeed& speed);

  /// Hosts as the topology numbers them; different ones.
  Route route(std::uint32_t from, std::uint32_t to);

  /// All that some route has needed so far.
  const std::vector<Link>& links() const noexcept { return links_; }

 private:
  enum class Kind : std::uint8_t { out, in, torus, direct };
  int link(Kind kind, int level, std::uint32_t a, std::uint32_t b, double bytesPerSecond, const std::string& name);
  void cross(int level, std::uint32_t from, std::uint32_t to, Route& route);
  std::string nameOf(int level, std::uint32_t group) const;

  const Topology& topology_;
  NetworkSpeed speed_;
  double card_, stream_;  // where the topology says nothing, bytes per second
  std::vector<Link> links_;
  std::map<std::tuple<Kind, int, std::uint32_t, std::uint32_t>, int> numbers_;
};

}  // namespace tacc::sim
