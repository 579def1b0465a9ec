// Groups that are joined through switches: tiers, from the outside at the top to hosts at the bottom.
#pragma once

#include "panel.hpp"

namespace tacc {

/// The lowest level whose groups drawTree() shows, where it begins with one of `level`: 0, or one whose groups are
/// wired inside in a way of their own.
int treeEnd(const Topology& topology, int level);

/// What is inside a group of a level. Every tier is as wide as what hangs on it; a line upward is as wide as what it
/// carries, and uplinks that differ stand on their lines. Where not all fits, one group of several is opened, and the
/// others are counted. Returns the bottom.
double drawTree(Canvas& canvas, int level, std::uint32_t group, double top);

}  // namespace tacc
