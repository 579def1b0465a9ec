#include "core/error.hpp"
#include "core/parse.hpp"
#include "core/text_file.hpp"
#include "topology/model/host_list.hpp"
#include "topology/sources/slurm.hpp"
#include "topology/sources/slurm_lines.hpp"

namespace tacc {
namespace {

struct Conf {
  std::string path;
  std::string text;
};

std::optional<Conf> findConf(const std::string& folder, const SlurmSite& site) {
  std::vector<std::string> paths = {folder + "slurm.conf"};
  if (!site.conf.empty()) paths.push_back(site.root + site.conf);
  for (const char* usual : {"/etc/slurm/slurm.conf", "/run/slurm/conf/slurm.conf"}) paths.push_back(site.root + usual);
  for (const std::string& path : paths)
    if (auto text = readTextIfThere(path)) return Conf{path, std::move(*text)};
  return std::nullopt;
}

}  // namespace

SlurmSite SlurmSite::in(const Surroundings& surroundings) {
  return {surroundings.root,
          surroundings.variable("SLURM_CONF"),
          surroundings.variable("SLURM_CLUSTER_NAME"),
          surroundings.variable("SLURM_JOB_PARTITION"),
          {}};
}

std::string slurmClusterName(const std::string& folder, const SlurmSite& site) {
  std::string name;
  if (const std::optional<Conf> conf = findConf(folder, site)) {
    std::vector<std::string> missing;
    const SlurmIncludes includes{site.root, nullptr, &missing};
    readSlurmLines(conf->text, conf->path, includes, [&](const SlurmLine& line) {
      if (const auto said = line.value("ClusterName")) name = *said;
    });
  }
  return name.empty() ? site.clusterName : name;
}

std::optional<SlurmPartition> topologyOfPartition(const std::string& folder, const SlurmSite& site) {
  if (site.partition.empty()) return std::nullopt;
  const std::optional<Conf> conf = findConf(folder, site);
  if (!conf) return std::nullopt;
  std::optional<SlurmPartition> found, standard;  // a line of PartitionName=DEFAULT is for all that follow it
  bool isThere = false;
  std::vector<std::string> missing;
  const SlurmIncludes includes{site.root, [&] { return site.clusterName; }, &missing};
  readSlurmLines(conf->text, conf->path, includes, [&](const SlurmLine& line) {
    if (line.pairs.empty() || !sameIgnoringCase(line.pairs.front().first, "PartitionName")) return;
    const std::string& name = line.pairs.front().second;
    const std::optional<std::string> topology = line.value("Topology");
    const std::optional<SlurmPartition> said =
        topology && !topology->empty() ? std::optional(SlurmPartition{*topology, line.where}) : std::nullopt;
    if (sameIgnoringCase(name, "DEFAULT")) {
      if (said) standard = said;
    } else if (name == site.partition) {
      isThere = true;
      found = said ? said : standard;
    }
  });
  if (!isThere && !missing.empty()) {
    fail(taccInvalidArgument,
         "{}: the topology of the job's partition {} is not known: it may stand in {}, which is included and cannot be "
         "read",
         conf->path, shownText(site.partition), missing.front());
  }
  return found;
}

}  // namespace tacc
