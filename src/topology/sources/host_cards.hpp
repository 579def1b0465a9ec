// What the network cards of hosts say of the network: how many there are, and what they carry.
#pragma once

#include <optional>
#include <vector>

#include "topology/model/draft.hpp"

namespace tacc {

/// The value above 0 that most have; of several such the least. Nothing where none is above 0.
std::optional<double> mostCommon(const std::vector<double>& values);

/// Writes down how many cards hosts have, what a host's cards carry together, and that a stream gets what one of them
/// carries. `speeds`: of each of draft.hosts those of its cards, bytes/s; 0: unknown, and then so is what the host's
/// cards carry together.
void addCards(TopologyDraft& draft, const std::vector<std::vector<double>>& speeds);

}  // namespace tacc
