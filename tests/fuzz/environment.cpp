// The environment: this library's own variables, and what launchers say.
//
// Input: lines of NAME=value.
#include "core/environment.hpp"

#include <string>
#include <vector>

#include "comm/launch/launch_environment.hpp"
#include "comm/launch/launch_id.hpp"
#include "fuzz/target.hpp"

namespace tacc::fuzz {
namespace {

std::vector<std::string> linesIn(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end).substr(0, text.find('\0')));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace

std::vector<Bytes> seeds() {
  std::string all;
  for (const EnvironmentVariable& variable : environmentVariables())
    all += std::string(variable.name) + "=" + variable.allowed.substr(0, variable.allowed.find(',')) + "\n";
  return {bytesOf(all),
          bytesOf("TACC_TIMEOUT=500ms\nTACC_CHUNK_SIZE=256K\nTACC_SPIN=100\nTACC_JOIN_WIDTH=3\nTACC_PORT_RANGE=1-9\n"),
          bytesOf("RANK=3\nWORLD_SIZE=8\nLOCAL_WORLD_SIZE=2\nMASTER_ADDR=127.0.0.1\nMASTER_PORT=29500\n"),
          bytesOf("OMPI_COMM_WORLD_RANK=0\nOMPI_COMM_WORLD_SIZE=2\nOMPI_COMM_WORLD_LOCAL_SIZE=2\nPMIX_NAMESPACE=a\n"),
          bytesOf("PMI_RANK=1\nPMI_SIZE=4\nMPI_LOCALNRANKS=4\nTACC_RENDEZVOUS=[fd00::2]:29400\n"),
          bytesOf("SLURM_PROCID=1\nSLURM_STEP_ID=0\nSLURM_NTASKS=4\nSLURM_JOB_ID=77\n"
                  "SLURM_STEP_NODELIST=node[07-09,12],gpu1\nSLURM_NNODES=5\n")};
}

}  // namespace tacc::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tacc;
  const std::vector<std::string> lines = fuzz::linesIn({reinterpret_cast<const char*>(data), size});
  std::vector<const char*> entries;
  Variables variables;
  std::string rendezvous;
  for (const std::string& line : lines) {
    entries.push_back(line.c_str());
    const std::size_t equals = line.find('=');
    if (equals == std::string::npos) continue;
    variables[line.substr(0, equals)] = line.substr(equals + 1);
    if (line.starts_with("TACC_RENDEZVOUS=")) rendezvous = line.substr(equals + 1);
    (void)parseMeetingPoint(line.substr(equals + 1));
    (void)firstHostOf(line.substr(equals + 1));
  }
  entries.push_back(nullptr);
  (void)fuzz::mayRefuse([&] { (void)parseEnvironment(entries.data()); });
  return fuzz::mayRefuse([&] {
    (void)isLaunched(variables);
    const Launch launch = readLaunch(variables, rendezvous);
    fuzz::require(launch.rank >= 0 && launch.rank < launch.ranks, "a rank that is none");
    (void)deriveUniqueId(launch, "secret", 1, {});
  });
}
