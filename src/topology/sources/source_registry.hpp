// The sources of knowledge about the topology, in the order of their weight, and how what they say becomes one
// topology.
//
// To add a source: a file with its functions, a row in source_registry.cpp.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "topology/model/finding.hpp"
#include "topology/sources/host_clues.hpp"

namespace tacc {

/// What the sources may look at. With equal clues and equal files all hosts find the same.
struct SourceContext {
  Surroundings surroundings = Surroundings::here();
  std::vector<std::string> files;  // TACC_TOPO_FILE; empty: not set
  std::vector<HostClues> hosts;    // of all hosts that take part
  bool isForced = false;           // this source alone was asked for: also what is expensive may be done
};

struct TopologySource {
  std::string_view name;
  std::string_view summary;  // one sentence
  std::string_view library;  // the Debian package that it needs and this build lacks; empty: complete
  /// Whether a file is of this source's kind, by its contents; null: it has no files.
  bool (*recognises)(std::string_view text);
  /// Such a file. Throws Error that names `origin` for what cannot be read.
  Topology (*read)(std::string_view text, const std::string& origin);
  /// What it knows here; nothing when it does not apply. Throws Error for what is broken. Null: it only reads files.
  std::optional<Finding> (*look)(const SourceContext& context);
  /// For a source that knows the inside of hosts alone: whether such a file names its host. Null: it knows networks.
  bool (*namesHost)(std::string_view text) = nullptr;
};

/// In the order of their weight: file, slurm, ibnet, cray, sunway, probe, hwloc. hwloc comes last because it knows the
/// inside of hosts only, which nobody contradicts.
std::span<const TopologySource> topologySources();

/// The source with this name; an Error (taccInvalidArgument) lists the names.
const TopologySource& topologySource(std::string_view name);

/// The source of a file's kind; an Error (taccInvalidArgument) says what the kinds are.
const TopologySource& sourceOfFile(std::string_view text, const std::string& origin);

/// What a file says; `only`: as a file of this source, empty: of the one that its contents tell. Throws Error that
/// names `path`.
Finding findingOfFile(std::string_view text, const std::string& path, std::string_view only = "");

/// In the order of the sources' weight; those of one source stay as they come.
void sortByWeight(std::vector<Finding>& findings);

/// What became of each source.
struct SourceState {
  std::string source, state;
};

struct Survey {
  Discovery discovery;
  std::vector<SourceState> states;
};

/// Asks all sources, or only the one named (TACC_TOPO_SOURCE), and puts together what they know. Files that the user
/// named take the place of what their sources would look at; where one source alone is asked and there are several
/// files, those of other kinds are passed over. Of the topologies only `context.hosts` is kept if there is more than
/// one, and a source that does not know them all is left out, unless it tells of the inside of hosts. What is wrong in
/// a file that the user named, or in a source that was forced, is thrown, naming it; else it stands in the states.
Survey discoverTopology(SourceContext context, std::string_view only = "");

}  // namespace tacc
