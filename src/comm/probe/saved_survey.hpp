// What an earlier job measured of the network and kept (topology/model/saved.hpp), as all ranks of a communicator agree
// on it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/bootstrap/bootstrap.hpp"
#include "topology/model/topology.hpp"

namespace tacc {

/// What a ring of hosts carries between two of them while all send to the next, bytes/s.
struct RingSpeeds {
  double slowest, fastest;
};

/// What the figures of a topology promise of the ring over these hosts of it; nothing where a pair has no figures.
std::optional<RingSpeeds> ringIn(const Topology& topology, std::span<const std::uint32_t> ring);

/// Whether this ring cannot be on the network that promises that one: all of it is much faster than the narrowest place
/// there would let it be, or all of it much slower. What is only disturbed is neither.
bool isOfAnotherNetwork(const RingSpeeds& measured, const RingSpeeds& promised) noexcept;

/// Whether both hold the same hosts together at every level, whatever they call them.
bool haveSameGroups(const Topology& a, const Topology& b);

/// Collective: rank 0 looks for the newest file that has all of these hosts and fits the ring over them, in their
/// order; all ranks get what it has, reduced to these hosts, or a topology without hosts. So it does not matter which
/// hosts see the file. Files that cannot be read are passed over, with a warning on rank 0.
Topology agreeOnSaved(Bootstrap& bootstrap, int rank, const std::vector<std::string>& hosts, std::string_view transport,
                      const RingSpeeds& ring);

}  // namespace tacc
