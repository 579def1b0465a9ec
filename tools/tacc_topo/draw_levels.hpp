// The table of levels, and the list of groups that are not as the others of their level.
#pragma once

#include "panel.hpp"

namespace tacc {

/// From the outside to the inside: how many groups, what a message costs, what is shared. Returns the bottom.
double drawLevels(Canvas& canvas, double top);

/// Uplinks of their own that stand beside no group in the picture: for each speed those who have it. Returns the
/// bottom, `top` where there are none.
double drawUnlike(Canvas& canvas, double top);

}  // namespace tacc
