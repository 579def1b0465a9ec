#include "core/error.hpp"
#include "topology/sources/slurm.hpp"

namespace tacc {

bool hasYaml() noexcept { return false; }

Topology topologyFromSlurmYaml(std::string_view, const std::string& origin, const SlurmSite&) {
  fail(taccInvalidUsage, "{}: this build reads no YAML; install libyaml-cpp-dev and build again", origin);
}

}  // namespace tacc
