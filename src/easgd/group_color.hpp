// Which ranks Hierarchical keeps together.
#pragma once

#include <sched.h>

#include <functional>
#include <vector>

#include "comm/communicator.hpp"
#include "easgd/settings.hpp"

namespace tacc {

/// Whether these cores lie in one NUMA domain. `domainOf`: the first domain of some cores.
bool liesInOneDomain(const cpu_set_t& cores, const std::function<int(const cpu_set_t&)>& domainOf);

/// Collective: of each rank a number that is equal in a group and different in different ones. Fails on all ranks, with
/// the first rank whose group cannot be told and why.
std::vector<int> gatherGroupColors(Communicator& all, const EasgdSettings& settings);

}  // namespace tacc
