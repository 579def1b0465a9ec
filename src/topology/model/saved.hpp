// Topologies that were measured once and kept, so that later jobs on the same hosts need not measure: one TOML file a
// cluster, in the user's cache. What was measured holds for the transport that carried the messages, so each has its
// own files:
//
//     ~/.cache/tacc/topology-<transport>-<digest of the hosts' names>.toml
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "topology/model/topology.hpp"
#include "topology/sources/host_clues.hpp"

namespace tacc {

/// $XDG_CACHE_HOME/tacc, else ~/.cache/tacc; empty where neither variable is set.
std::string folderOfSaved(const Surroundings& here);

/// Where a topology of these hosts is kept, in whatever order they are given. Throws Error (taccInvalidUsage) where
/// there is no folder.
std::string pathOfSaved(const Surroundings& here, std::string_view transport, std::vector<std::string> hosts);

/// The files that there are for a transport, the newest first; at most some hundreds. Empty where there is no folder.
std::vector<std::string> savedFiles(const Surroundings& here, std::string_view transport);

/// To be called before a measurement rather than after it: throws like saveTopology(), and leaves what is there.
void requireSavable(const std::string& path);

/// Writes it as TOML with `remark` as a first line; makes the folder. Who reads meanwhile sees the old file or the new
/// one. Throws Error (taccSystemError) that names the file.
void saveTopology(const std::string& path, const Topology& topology, std::string_view remark);

}  // namespace tacc
