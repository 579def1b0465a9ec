// Finds levels of groups in measurements between hosts, without being told of any.
#pragma once

#include <cstdint>
#include <vector>

#include "topology/probe/probe_matrix.hpp"

namespace tacc {

/// Levels from the inside, without node and root: the group of each host, groups numbered by their first host. Empty
/// for a flat network. Measurements may have holes and some ten percent of noise; levels that differ by less than a
/// quarter in latency times slowness are one. A pure function. For n hosts and m samples O(n^3) up to 128 hosts, else
/// O(m log m).
std::vector<std::vector<std::uint32_t>> findGroups(const ProbeMatrix& matrix);

/// How far apart two classes of pairs must be to be two levels: the logarithm of latency times slowness.
inline constexpr double levelGap = 0.25;

}  // namespace tacc
