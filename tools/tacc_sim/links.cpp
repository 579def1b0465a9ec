#include "links.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "topology/model/torus.hpp"

namespace tacc::sim {

Links::Links(const Topology& topology, const NetworkSpeed& speed)
    : topology_(topology), speed_(speed), card_(0), stream_(0) {
  for (int level = 1; level < topology.levels(); ++level)
    card_ = std::max(card_, topology.level(level).bandwidth.value_or(0));
  if (card_ == 0) card_ = speed.bytesPerSecond;
  for (std::uint32_t host = 0; host < topology.hosts(); ++host)
    stream_ = std::max(stream_, topology.uplink(0, host).value_or(card_));
}

int Links::link(Kind kind, int level, std::uint32_t a, std::uint32_t b, double bytesPerSecond,
                const std::string& name) {
  const auto [entry, isNew] = numbers_.try_emplace({kind, level, a, b}, static_cast<int>(links_.size()));
  if (isNew) links_.push_back({name, bytesPerSecond});
  return entry->second;
}

std::string Links::nameOf(int level, std::uint32_t group) const {
  if (level == 0) return topology_.host(group);
  const std::string& name = topology_.groupName(level, group);
  return fmt::format("{} {}", topology_.level(level).name, name.empty() ? std::to_string(group) : name);
}

/// What joins the groups of the level below, from that of one host to that of the other.
void Links::cross(int at, std::uint32_t from, std::uint32_t to, Route& route) {
  const Level& level = topology_.level(at);
  if (level.wiring == Wiring::tree || !level.linkBandwidth) return;
  const std::uint32_t a = topology_.groupOf(at - 1, from), b = topology_.groupOf(at - 1, to);
  const double capacity = *level.linkBandwidth * level.links;
  if (level.wiring == Wiring::allToAll) {
    route.links.push_back(
        link(Kind::direct, at, a, b, capacity, fmt::format("{} to {}", nameOf(at - 1, a), nameOf(at - 1, b))));
    return;
  }
  // Places are counted inside the one torus in which both lie.
  const std::uint32_t first = topology_.groupOf(at - 1, topology_.hostsOf(at, topology_.groupOf(at, from)).first);
  alongTorus(level.dimensions, a - first, b - first, [&](const TorusHop& hop) {
    route.links.push_back(link(
        Kind::torus, at, first + hop.place, numberOf(hop, level.dimensions.size()), capacity,
        fmt::format("{} dimension {} {}", nameOf(at - 1, first + hop.place), hop.dimension, hop.isUp ? "up" : "down")));
  });
}

Route Links::route(std::uint32_t from, std::uint32_t to) {
  if (from == to) fail(taccInternalError, "a message from the host {} to itself has no route", topology_.host(from));
  Route route;
  route.level = topology_.meet(from, to);
  route.latency = topology_.level(route.level).alpha.value_or(speed_.latency);
  route.bytesPerSecond = topology_.level(route.level).bandwidth.value_or(stream_);
  const auto uplink = [&](Kind kind, int level, std::uint32_t host) {
    const std::uint32_t group = topology_.groupOf(level, host);
    std::optional<double> capacity = topology_.uplink(level, group);
    if (level == 0 && !capacity) capacity = card_;
    if (!capacity) return;
    route.links.push_back(link(kind, level, group, 0, *capacity,
                               fmt::format("{} {}", nameOf(level, group), kind == Kind::out ? "out" : "in")));
  };
  for (int level = 0; level < route.level; ++level) uplink(Kind::out, level, from);
  cross(route.level, from, to, route);
  for (int level = route.level - 1; level >= 0; --level) uplink(Kind::in, level, to);
  return route;
}

}  // namespace tacc::sim
