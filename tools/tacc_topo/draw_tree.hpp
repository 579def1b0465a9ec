// Groups that are joined through switches: tiers, from the outside at the top to hosts at the bottom.
#pragma once

#include "panel.hpp"

namespace tacc {

/// What is inside a group of a level. Every tier is as wide as what hangs on it; a line upward is as wide as what it
/// carries, and uplinks that differ stand on their lines. Where not all fits, one group of several is opened, and the
/// others are counted. Returns the bottom, and in `next` the level of the groups whose inside is not drawn: 0, one that
/// is wired inside in a way of its own, or one for which there was no more room.
double drawTree(Canvas& canvas, int level, std::uint32_t group, double top, int& next);

}  // namespace tacc
