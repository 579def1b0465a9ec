#include "topology/sources/source_registry.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include "core/error.hpp"
#include "core/parse.hpp"
#include "core/text_file.hpp"
#include "topology/sources/sources.hpp"

namespace tacc {
namespace {

TopologySource named(std::string_view name, TopologySource source) {
  source.name = name;
  return source;
}

#define TACC_NAMED_SOURCE(name) named(#name, name##Source()),
const auto& sources() {
  static const std::array sources = {TACC_TOPOLOGY_SOURCES(TACC_NAMED_SOURCE)};
  return sources;
}
#undef TACC_NAMED_SOURCE

/// The hosts as the topology calls them.
std::vector<std::string> namesIn(const Topology& topology, const std::vector<HostClues>& hosts) {
  std::vector<std::string> names;
  for (const HostClues& clues : hosts) {
    const std::optional<std::uint32_t> known = topology.findHost(clues.host);
    names.push_back(known ? topology.host(*known) : clues.host);
  }
  return names;
}

/// Of the hosts that take part. A source that tells of the inside of hosts needs not know them all.
void restrict(Finding& finding, const std::vector<HostClues>& hosts) {
  if (hosts.size() < 2 || finding.isOfAnyHost) return;
  std::vector<std::string> names = namesIn(finding.topology, hosts);
  if (topologySource(finding.source).namesHost != nullptr)
    std::erase_if(names, [&](const std::string& name) { return !finding.topology.find(name); });
  finding.topology = finding.topology.only(names);
}

/// What the files say that the user named.
std::vector<Finding> findingsOfFiles(const std::vector<std::string>& files, std::string_view only) {
  std::vector<Finding> findings;
  for (const std::string& file : files) {
    const std::string text = readText(file);
    const bool isAlone = files.size() == 1;
    if (!only.empty() && !isAlone && sourceOfFile(text, file).name != only) continue;
    findings.push_back(findingOfFile(text, file, only));
  }
  if (!files.empty() && findings.empty()) {
    fail(taccInvalidArgument, "the source {} was asked for, but none of the files {} is of its kind", only,
         fmt::join(files, ", "));
  }
  sortByWeight(findings);
  return findings;
}

/// What a source knows here, unless the user named files of its kind.
std::vector<Finding> findingsOf(const TopologySource& source, const SourceContext& context,
                                const std::vector<Finding>& named) {
  std::vector<Finding> findings;
  std::ranges::copy_if(named, std::back_inserter(findings),
                       [&](const Finding& finding) { return finding.source == source.name; });
  if (!findings.empty() || source.look == nullptr) return findings;
  if (auto found = source.look(context)) findings.push_back(*std::move(found));
  return findings;
}

}  // namespace

std::span<const TopologySource> topologySources() { return sources(); }

const TopologySource& topologySource(std::string_view name) {
  std::vector<std::string_view> names;
  for (const TopologySource& source : sources()) {
    if (source.name == name) return source;
    names.push_back(source.name);
  }
  const std::string_view meant = nearest(name, names);
  fail(taccInvalidArgument, "there is no source of topology \"{}\"{} (there are: {})", name,
       meant.empty() ? std::string() : fmt::format("; did you mean {}?", meant), listOf(names));
}

const TopologySource& sourceOfFile(std::string_view text, const std::string& origin) {
  // TOML comes last: it is known by what it does not look like.
  for (std::size_t i = sources().size(); i-- > 0;) {
    if (sources()[i].recognises != nullptr && sources()[i].recognises(text)) return sources()[i];
  }
  std::vector<std::string> kinds;
  for (const TopologySource& source : sources())
    if (source.recognises != nullptr) kinds.push_back(fmt::format("{} ({})", source.name, source.summary));
  fail(taccInvalidArgument, "{}: not known what kind of file this is; there are files of the sources {}", origin,
       fmt::join(kinds, ", "));
}

Finding findingOfFile(std::string_view text, const std::string& path, std::string_view only) {
  const TopologySource& source = only.empty() ? sourceOfFile(text, path) : topologySource(only);
  if (source.read == nullptr) fail(taccInvalidArgument, "{}: the source {} has no files", path, source.name);
  const bool isOfAnyHost = source.namesHost != nullptr && !source.namesHost(text);
  return {std::string(source.name), path, source.read(text, path), isOfAnyHost};
}

void sortByWeight(std::vector<Finding>& findings) {
  const auto weight = [](const Finding& finding) {
    return std::ranges::find(sources(), finding.source, &TopologySource::name) - sources().begin();
  };
  std::ranges::stable_sort(findings, {}, weight);
}

Survey discoverTopology(SourceContext context, std::string_view only) {
  Survey survey;
  std::vector<Finding> findings;
  context.isForced = !only.empty();
  if (!only.empty()) (void)topologySource(only);
  const std::vector<Finding> named = findingsOfFiles(context.files, only);
  for (const TopologySource& source : sources()) {
    const auto state = [&](std::string text) { survey.states.push_back({std::string(source.name), std::move(text)}); };
    if (!only.empty() && source.name != only) {
      state("not asked");
      continue;
    }
    const bool isNamed = std::ranges::find(named, source.name, &Finding::source) != named.end();
    std::string origin;
    try {
      std::vector<Finding> all = findingsOf(source, context, named);
      std::erase_if(all, [](const Finding& finding) { return finding.topology.hosts() == 0; });
      if (all.empty()) {
        if (source.name == only) {
          fail(taccInvalidUsage, "the source {} was asked for, but knows nothing here: {}", source.name,
               source.summary);
        }
        state(source.library.empty() ? "knows nothing here"
                                     : fmt::format("knows nothing here (not in this build: {})", source.library));
        continue;
      }
      std::string text;
      for (Finding& finding : all) {
        origin = finding.origin;
        restrict(finding, context.hosts);
        text += fmt::format("{}{} hosts, {} levels{}", text.empty() ? "" : "; ", finding.topology.hosts(),
                            finding.topology.levels(), origin.empty() ? "" : " from " + origin);
        if (finding.topology.hosts() > 0) findings.push_back(std::move(finding));
      }
      state(std::move(text));
    } catch (const Error& error) {
      if (isNamed && !origin.empty()) fail(error.result(), "{}: {}", origin, error.what());
      if (source.name == only || isNamed) throw;
      state(fmt::format("left out: {}", error.what()));
    }
  }
  survey.discovery = merge(findings);
  return survey;
}

}  // namespace tacc
