#include "comm/probe/saved_survey.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "core/error.hpp"
#include "core/log.hpp"
#include "core/text_file.hpp"
#include "topology/model/saved.hpp"
#include "topology/toml/toml.hpp"

namespace tacc {
namespace {

/// A rank that waits for a processor finds its message there and takes it for fast; other jobs, and messages that are
/// short for a fast link, make others slow.
constexpr double muchFaster = 3, muchSlower = 8;

constexpr double unknown = std::numeric_limits<double>::infinity();

/// How many messages of a ring leave and enter each group of a level.
struct Crossings {
  std::vector<std::uint32_t> leaving, entering;
};

/// Hosts of the topology in the order of `names`; nothing if it lacks one.
std::optional<std::vector<std::uint32_t>> placesOf(const Topology& topology, const std::vector<std::string>& names) {
  std::vector<std::uint32_t> places;
  for (const std::string& name : names) {
    const auto place = topology.findHost(name);
    if (!place) return std::nullopt;
    places.push_back(*place);
  }
  return places;
}

/// The file's topology of these hosts alone, if it has them and fits what the ring over them carried.
std::optional<Topology> readSaved(const std::string& path, const std::vector<std::string>& hosts,
                                  const RingSpeeds& ring) {
  const Topology whole = topologyFromToml(readText(path), path);
  const auto places = placesOf(whole, hosts);
  if (!places) return std::nullopt;
  std::vector<std::string> names;
  for (const std::uint32_t place : *places) names.push_back(whole.host(place));
  Topology part = whole.only(names);
  const auto promised = ringIn(part, placesOf(part, names).value());
  if (promised && isOfAnotherNetwork(ring, *promised)) {
    constexpr double mega = 1e6;
    fail(taccInvalidUsage,
         "{}: not this network any more: a ring of its hosts carries {:.3g} to {:.3g} MB/s, where the file promises "
         "{:.3g} to {:.3g}; measure again with tacc_topo --probe --save",
         path, ring.slowest / mega, ring.fastest / mega, promised->slowest / mega, promised->fastest / mega);
  }
  return part;
}

std::optional<Topology> lookForSaved(int rank, const std::vector<std::string>& hosts, std::string_view transport,
                                     const RingSpeeds& ring) {
  for (const std::string& path : savedFiles(Surroundings::here(), transport)) {
    try {
      std::optional<Topology> found = readSaved(path, hosts, ring);
      if (!found) continue;
      log(LogLevel::info, rank, "the network was measured before: {}", path);
      return found;
    } catch (const Error& error) {
      log(LogLevel::warn, rank, "not used: {}", error.what());
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<RingSpeeds> ringIn(const Topology& topology, std::span<const std::uint32_t> ring) {
  std::vector<Crossings> crossings;
  for (int l = 0; l < topology.root(); ++l) {
    Crossings& level = crossings.emplace_back();
    level.leaving.resize(topology.groups(l));
    level.entering.resize(topology.groups(l));
  }
  const auto each = [&](auto take) {
    for (std::size_t i = 0; i < ring.size(); ++i) {
      const std::uint32_t from = ring[i], to = ring[(i + 1) % ring.size()];
      if (from != to) take(from, to, topology.meet(from, to));
    }
  };
  each([&](std::uint32_t from, std::uint32_t to, int meet) {
    for (int l = 0; l < meet; ++l) {
      ++crossings[static_cast<std::size_t>(l)].leaving[topology.groupOf(l, from)];
      ++crossings[static_cast<std::size_t>(l)].entering[topology.groupOf(l, to)];
    }
  });
  RingSpeeds speeds{unknown, 0};
  each([&](std::uint32_t from, std::uint32_t to, int meet) {
    double carried = topology.level(meet).bandwidth.value_or(unknown);
    for (int l = 0; l < meet; ++l) {
      const Crossings& level = crossings[static_cast<std::size_t>(l)];
      const std::uint32_t out = topology.groupOf(l, from), in = topology.groupOf(l, to);
      carried = std::min({carried, topology.uplink(l, out).value_or(unknown) / level.leaving[out],
                          topology.uplink(l, in).value_or(unknown) / level.entering[in]});
    }
    speeds = {std::min(speeds.slowest, carried), std::max(speeds.fastest, carried)};
  });
  if (speeds.fastest == 0 || speeds.fastest == unknown) return std::nullopt;
  return speeds;
}

bool isOfAnotherNetwork(const RingSpeeds& measured, const RingSpeeds& promised) noexcept {
  return measured.slowest > muchFaster * promised.slowest || measured.fastest * muchSlower < promised.slowest;
}

bool haveSameGroups(const Topology& a, const Topology& b) {
  if (a.levels() != b.levels() || a.hosts() != b.hosts()) return false;
  const auto places = placesOf(b, a.hostNames());
  if (!places) return false;
  for (int l = 1; l < a.root(); ++l) {
    if (a.groups(l) != b.groups(l)) return false;
    std::map<std::uint32_t, std::uint32_t> partner;  // with as many groups, one for each of a's is one for each of b's
    for (std::uint32_t host = 0; host < a.hosts(); ++host) {
      const std::uint32_t theirs = b.groupOf(l, (*places)[host]);
      if (partner.try_emplace(a.groupOf(l, host), theirs).first->second != theirs) return false;
    }
  }
  return true;
}

Topology agreeOnSaved(Bootstrap& bootstrap, int rank, const std::vector<std::string>& hosts, std::string_view transport,
                      const RingSpeeds& ring) {
  std::string text;
  if (rank == 0) {
    if (const auto found = lookForSaved(rank, hosts, transport, ring)) text = topologyToToml(*found);
  }
  const auto bytes = bootstrap.broadcast(std::as_bytes(std::span(text)));
  if (bytes.empty()) return {};
  return topologyFromToml({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, "the saved topology of rank 0");
}

}  // namespace tacc
