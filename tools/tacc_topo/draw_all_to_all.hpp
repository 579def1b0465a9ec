// Groups of which each is joined with each, as in a dragonfly.
#pragma once

#include "panel.hpp"

namespace tacc {

/// What is inside a group of a level that is wired so: its groups on a circle, and chords between them. Of more than
/// some twenty, those between are counted, and the chords of the first group stand for all. Returns the bottom.
double drawAllToAll(Canvas& canvas, int level, std::uint32_t group, double top);

}  // namespace tacc
