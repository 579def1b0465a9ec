// The definitions that source_registry.cpp puts together; source_registry.hpp says what their functions promise.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/topology_sources.hpp"
#include "topology/sources/source_registry.hpp"

namespace tacc {

// fileSource(), slurmSource() and so on, each in source_NAME.cpp. The registry fills in their names.
#define TACC_DECLARE_SOURCE(name) TopologySource name##Source();
TACC_TOPOLOGY_SOURCES(TACC_DECLARE_SOURCE)
#undef TACC_DECLARE_SOURCE

}  // namespace tacc
