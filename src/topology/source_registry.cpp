#include "topology/source_registry.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/parse.hpp"
#include "topology/hwloc_node.hpp"
#include "topology/ibnet.hpp"
#include "topology/slurm.hpp"
#include "topology/sources.hpp"
#include "topology/text_file.hpp"

namespace tacc {
namespace {

const std::array<TopologySource, 7>& table() {
  static const std::array<TopologySource, 7> sources = {{
      {"file", "a TOML file: TACC_TOPO_FILE, ~/.config/tacc/topology.toml or /etc/tacc/topology.toml", "",
       recognisesToml, readTomlFile, lookForTomlFile},
      {"slurm",
       "topology.yaml and topology.conf of Slurm, what scontrol show topology prints, SLURM_TOPOLOGY_ADDR of a job",
       hasYaml() ? "" : "libyaml-cpp-dev", recognisesSlurm, readSlurmFile, lookForSlurm},
      {"ibnet",
       "an InfiniBand network: a file that ibnetdiscover wrote, or the subnet itself when this source is forced",
       hasIbnetdisc() ? "" : "libibnetdisc-dev", recognisesIbnet, readIbnetFile, lookForIbnet},
      {"cray", "names of places in Cray machines: cname, xname, addresses of Slingshot cards", "", recognisesCray,
       readCrayFile, lookForCray},
      {"sunway", "host names of Sunway TaihuLight: vn000123 is in supernode 123 / 256", "", recognisesSunway,
       readSunwayFile, lookForSunway},
      {"probe", "latencies and bandwidths that were measured between pairs of hosts", "", recognisesProbe,
       readProbeFile, nullptr},
      {"hwloc", "the inside of hosts: cores, caches, NUMA nodes, sockets", hasHwloc() ? "" : "libhwloc-dev",
       recognisesHwloc, readHwlocFile, lookForHwloc},
  }};
  return sources;
}

/// The hosts as the topology calls them.
std::vector<std::string> namesIn(const Topology& topology, const std::vector<HostClues>& hosts) {
  std::vector<std::string> names;
  for (const HostClues& clues : hosts) {
    const std::optional<std::uint32_t> known = topology.findHost(clues.host);
    names.push_back(known ? topology.host(*known) : clues.host);
  }
  return names;
}

/// A finding of a file that the user named, whatever source it belongs to.
std::optional<Finding> findingOf(const TopologySource& source, const SourceContext& context, std::string_view named) {
  if (!context.file.empty() && source.name == named) {
    return Finding{std::string(source.name), context.file, source.read(readText(context.file), context.file)};
  }
  return source.look == nullptr ? std::nullopt : source.look(context);
}

}  // namespace

std::span<const TopologySource> topologySources() { return table(); }

const TopologySource& topologySource(std::string_view name) {
  std::vector<std::string_view> names;
  for (const TopologySource& source : table()) {
    if (source.name == name) return source;
    names.push_back(source.name);
  }
  const std::string_view meant = nearest(name, names);
  fail(taccInvalidArgument, "there is no source of topology \"{}\"{} (there are: {})", name,
       meant.empty() ? std::string() : fmt::format("; did you mean {}?", meant), listOf(names));
}

const TopologySource& sourceOfFile(std::string_view text, const std::string& origin) {
  // TOML comes last: it is known by what it does not look like.
  for (std::size_t i = table().size(); i-- > 0;) {
    if (table()[i].recognises != nullptr && table()[i].recognises(text)) return table()[i];
  }
  fail(taccInvalidArgument,
       "{}: not known what kind of file this is; known are TOML (docs/topology.md), topology.conf and topology.yaml of "
       "Slurm, what scontrol show topology prints, "
       "the output of ibnetdiscover, XML of hwloc, lists of hosts with Cray or Sunway names, and measurements",
       origin);
}

Survey discoverTopology(SourceContext context, std::string_view only) {
  Survey survey;
  std::vector<Finding> findings;
  context.isForced = !only.empty();
  const std::string_view named = context.file.empty() ? std::string_view()
                                 : !only.empty()      ? only
                                                      : sourceOfFile(readText(context.file), context.file).name;
  if (!only.empty()) (void)topologySource(only);
  for (const TopologySource& source : table()) {
    const auto state = [&](std::string text) { survey.states.push_back({std::string(source.name), std::move(text)}); };
    if (!only.empty() && source.name != only) {
      state("not asked");
      continue;
    }
    const bool mustWork = source.name == only || source.name == named;
    try {
      std::optional<Finding> finding = findingOf(source, context, named);
      if (!finding || finding->topology.hosts() == 0) {
        if (source.name == only) {
          fail(taccInvalidUsage, "the source {} was asked for, but knows nothing here: {}", source.name,
               source.summary);
        }
        state(source.library.empty() ? "knows nothing here"
                                     : fmt::format("knows nothing here (not in this build: {})", source.library));
        continue;
      }
      if (context.hosts.size() > 1)
        finding->topology = finding->topology.only(namesIn(finding->topology, context.hosts));
      state(fmt::format("{} hosts, {} levels{}", finding->topology.hosts(), finding->topology.levels(),
                        finding->origin.empty() ? "" : " from " + finding->origin));
      findings.push_back(std::move(*finding));
    } catch (const Error& error) {
      if (mustWork) throw;
      state(fmt::format("left out: {}", error.what()));
    }
  }
  survey.discovery = merge(findings);
  return survey;
}

}  // namespace tacc
