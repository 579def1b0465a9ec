// Groups that are joined with their neighbours in a closed grid.
#pragma once

#include "panel.hpp"

namespace tacc {

/// What is inside a group of a level that is a torus: places in rows and columns, further dimensions as slices. Links
/// that go round end in hooks. Few places are boxes with names, many are dots; of too many, those at the ends are
/// drawn. Returns the bottom.
double drawTorus(Canvas& canvas, int level, std::uint32_t group, double top);

}  // namespace tacc
