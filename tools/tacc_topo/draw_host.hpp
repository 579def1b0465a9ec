// What is inside of a host: sockets, NUMA nodes, caches and cores as boxes in boxes, and its network cards.
#pragma once

#include "panel.hpp"

namespace tacc {

/// Each different kind of host that the topology describes, with the hosts of the kind and what their link to the
/// network carries. Of very many cores, like parts are counted. Returns the bottom, `top` if no host is described.
double drawHosts(Canvas& canvas, double top);

}  // namespace tacc
