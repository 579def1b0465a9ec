// The parts of a topology's picture. Each draws from `top` downward.
#pragma once

#include "panel.hpp"

namespace tacc {

/// The table of levels, from the outside to the inside: how many groups, what a message costs, what is shared. Returns
/// the bottom.
double drawLevels(Canvas& canvas, double top);

/// Uplinks of their own that stand beside no group in the picture: for each speed those who have it. Returns the
/// bottom, `top` where there are none.
double drawUnlike(Canvas& canvas, double top);

/// What is inside a group of a level that is joined through switches: tiers, from the outside at the top to hosts at
/// the bottom. Every tier is as wide as what hangs on it; a line upward is as wide as what it carries, and uplinks that
/// differ stand on their lines. Where not all fits, one group of several is opened, and the others are counted. Returns
/// the bottom, and in `next` the level of the groups whose inside is not drawn: 0, one that is wired inside in a way of
/// its own, or one for which there was no more room.
double drawTree(Canvas& canvas, int level, std::uint32_t group, double top, int& next);

/// What is inside a group of a level that is a torus, a closed grid: places in rows and columns, further dimensions as
/// slices. Links that go round end in hooks. Few places are boxes with names, many are dots; of too many, those at the
/// ends are drawn. Returns the bottom.
double drawTorus(Canvas& canvas, int level, std::uint32_t group, double top);

/// What is inside a group of a level whose groups are joined each with each, as in a dragonfly: groups on a circle, and
/// chords between them. Of more than some twenty, those between are counted, and the chords of the first group stand
/// for all. Returns the bottom.
double drawAllToAll(Canvas& canvas, int level, std::uint32_t group, double top);

/// Each different kind of host that the topology describes: its sockets, NUMA nodes, caches and cores as boxes in
/// boxes, and its network cards, with the hosts of the kind and what their link to the network carries. Of very many
/// cores, like parts are counted. Returns the bottom, `top` if no host is described.
double drawHosts(Canvas& canvas, double top);

}  // namespace tacc
