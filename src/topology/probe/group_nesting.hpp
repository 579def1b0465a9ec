// Sets of hosts of which any two lie in each other or have no host in common: the groups of a network, seen as a tree.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "topology/probe/shared_rates.hpp"

namespace tacc {

bool isNestedOrApart(HostSet a, HostSet b) noexcept;

/// The smallest of `groups` that holds `group` and more; `all` if there is none.
HostSet parentOf(std::span<const HostSet> groups, HostSet all, HostSet group) noexcept;

/// What `group` consists of: the largest of `groups` in it, and its hosts that are in none of these, one by one.
std::vector<HostSet> partsOf(std::span<const HostSet> groups, HostSet group);

/// How many groups lie in each other in this one, itself among them.
int heightOf(std::span<const HostSet> groups, HostSet group);

/// Levels of these groups from the inside: the group of each host, numbered by their first hosts. A host that is in no
/// group of a level is one by itself.
std::vector<std::vector<std::uint32_t>> levelsOf(std::uint32_t hosts, std::vector<HostSet> groups);

}  // namespace tacc
