// What hwloc knows of a host: the one this runs on, one whose XML was saved, or one described in a word.
#pragma once

#include <string>
#include <string_view>

#include "topology/model/node_description.hpp"

namespace tacc {

/// Whether this build has hwloc. Without it the functions below throw taccInvalidUsage, saying which package is
/// missing.
bool hasHwloc() noexcept;

/// The host that this runs on, with the cores that the process may use. Takes milliseconds.
NodeDescription nodeHere();

/// The whole of it, with the cores that only others may use.
NodeDescription wholeNodeHere();

/// From what `lstopo FILE.xml` wrote. Throws Error (taccInvalidArgument) that names `where` for what hwloc does not
/// read.
NodeDescription nodeFromXml(std::string_view xml, const std::string& where);

/// From hwloc's synthetic description, e.g. "pack:2 numa:2 l3:1 core:8 pu:2". Throws like nodeFromXml().
NodeDescription nodeFromSynthetic(const std::string& description, const std::string& where);

}  // namespace tacc
