// The sources of topology. The words of TACC_TOPO_SOURCE and the registry of sources follow from this table.
#pragma once

/// row(NAME) for every source, in the order of its weight. NAME is its word in TACC_TOPO_SOURCE, and NAMESource() its
/// definition (topology/sources/sources.hpp). hwloc is last because it knows the inside of hosts only, which nobody
/// contradicts. A user of the table expands what it needs of a row, so that core names nothing of the layers above.
#define TACC_TOPOLOGY_SOURCES(row) row(file) row(slurm) row(ibnet) row(cray) row(sunway) row(probe) row(hwloc)
