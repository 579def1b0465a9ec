#include "coordinator/launch.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include "support/process.hpp"
#include "support/words.hpp"

namespace tacc::bench {
namespace {

using Words = std::vector<std::string>;
namespace fs = std::filesystem;

Words& operator+=(Words& words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::string ownProgram() { return fs::read_symlink("/proc/self/exe"); }

constexpr std::string_view preloadedEnding = "+tacc";

/// The MPI of "mpich+tacc", and any other name as it is.
std::string mpiOf(const std::string& name) {
  return isPreloaded(name) ? name.substr(0, name.size() - preloadedEnding.size()) : name;
}

/// What an MPI program preloads to be served by tacc: in a build directory, or where it is installed.
std::string findPreloaded() {
  const fs::path here = fs::path(ownProgram()).parent_path();
  for (const fs::path& place : {here / "../plugins/mpi", here / ".." / TACC_LIBRARY_DIRECTORY})
    if (const fs::path library = place / "libtacc_mpi.so"; ::access(library.c_str(), R_OK) == 0)
      return fs::canonical(library);
  throw std::runtime_error("libtacc_mpi.so, which a peer with +tacc preloads, is not there; on Debian tacc-mpi has it");
}

/// Beside this program in a build directory, or where it is installed.
std::string findPeerProgram(const std::string& name, const Options& options) {
  const std::string file = name + "_peer";
  Words places;
  if (!options.peerDirectory.empty()) {
    places = {options.peerDirectory};
  } else {
    const fs::path here = fs::path(ownProgram()).parent_path();
    places = {here, here / "../libexec/tacc"};
  }
  for (const std::string& place : places)
    if (const fs::path program = fs::path(place) / file; ::access(program.c_str(), X_OK) == 0) return program;
  throw std::runtime_error(
      fmt::format("the peer {} is not there: no program {} in {}; it is built when the library's "
                  "development package is installed",
                  name, file, tools::joinWords(places)));
}

void requireLauncher(const std::string& launcher, const std::string& package) {
  std::istringstream path(std::getenv("PATH") != nullptr ? std::getenv("PATH") : "");
  for (std::string place; std::getline(path, place, ':');)
    if (::access((place + "/" + launcher).c_str(), X_OK) == 0) return;
  throw std::runtime_error(fmt::format("{} is not in the PATH; on Debian the package {} has it", launcher, package));
}

/// What --peer-args adds for this peer.
Words extraArguments(const std::string& name, const Options& options) {
  const auto found = options.peerArguments.find(name);
  return found == options.peerArguments.end() ? Words{} : found->second;
}

/// Hydra fills the hosts one after the other, each with as many ranks as stand behind its name, and then begins again.
std::string mpichHosts(const tools::VirtualHosts& hosts) {
  std::vector<std::pair<std::string, int>> runs;
  for (const std::string& host : hosts.names()) {
    if (runs.empty() || runs.back().first != host) runs.emplace_back(host, 0);
    ++runs.back().second;
  }
  std::string text;
  for (size_t i = 0; i < runs.size() && (i == 0 || runs[i].first != runs[0].first); ++i)
    text += fmt::format("{}{}:{}", i == 0 ? "" : ",", runs[i].first, runs[i].second);
  return text;
}

/// TCP between hosts, UCX's shared memory and CMA inside one; UCX tells hosts apart by their boot ids. Nothing is
/// bound, as each host would begin with the same core.
Words mpichBetween(const tools::VirtualHosts& hosts, const Options& options) {
  Words words = {"env", "UCX_TLS=tcp,sm,self", "mpiexec.mpich", "-launcher", "ssh", "-launcher-exec"};
  words += {hosts.remoteShell(), "-iface", "eth0", "-hosts", mpichHosts(hosts), "-n", std::to_string(options.ranks)};
  return words += extraArguments("mpich", options);
}

/// Debian's MPICH (ch4:ucx) moves data between processes of a node by UCX's shared memory and CMA, its defaults. A rank
/// that owns a core keeps its caches; binding more ranks than cores would only hinder the scheduler.
Words mpichLauncher(const Options& options, const tools::VirtualHosts* hosts) {
  requireLauncher("mpiexec.mpich", "mpich");
  if (hosts != nullptr) return mpichBetween(*hosts, options);
  Words words = {"mpiexec.mpich", "-n", std::to_string(options.ranks)};
  // Hydra takes the option once only, so the user's own comes in its place.
  const Words extra = extraArguments("mpich", options);
  const bool userBinds = std::find(extra.begin(), extra.end(), "-bind-to") != extra.end();
  if (options.ranks <= tools::allowedCpus() && !userBinds) words += {"-bind-to", "core"};
  return words += extra;
}

/// As below, with TCP between the hosts. The hosts of the ranks are in a file, line by line.
Words openMpiBetween(const tools::VirtualHosts& hosts, const Options& options, const std::string& directory) {
  const std::string file = directory + "/hosts";
  std::ofstream lines(file);
  for (const std::string& host : hosts.names()) lines << host << '\n';
  Words words = {"mpiexec.openmpi", "-n", std::to_string(options.ranks), "--allow-run-as-root"};
  words += {"--mca", "plm_rsh_agent", hosts.remoteShell(), "--hostfile", file, "--map-by", "seq", "--bind-to", "none"};
  words += {"--mca", "oob_tcp_if_include", "eth0", "--mca", "btl_tcp_if_include", "eth0", "--mca", "pml", "ob1"};
  words += {"--mca", "btl", "vader,tcp,self", "--mca", "orte_tmpdir_base", directory};
  if (options.ranks > tools::allowedCpus()) words += {"--mca", "mpi_yield_when_idle", "1"};
  return words += extraArguments("openmpi", options);
}

/// Open MPI's vader with CMA is its fastest way inside a node. With more ranks than cores it must be told to yield, or
/// it is slower by orders of magnitude. What it writes to disk stays in `directory`.
Words openMpiLauncher(const Options& options, const std::string& directory, const tools::VirtualHosts* hosts) {
  requireLauncher("mpiexec.openmpi", "openmpi-bin");
  if (hosts != nullptr) return openMpiBetween(*hosts, options, directory);
  Words words = {"mpiexec.openmpi", "-n", std::to_string(options.ranks), "--allow-run-as-root"};
  words += {"--mca", "pml", "ob1", "--mca", "btl", "vader,self", "--mca", "orte_tmpdir_base", directory};
  if (options.ranks <= tools::allowedCpus())
    words += {"--bind-to", "core"};
  else
    words += {"--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"};
  return words += extraArguments("openmpi", options);
}

/// A launch whose ranks, or whose launchers, are started by what start() makes of a command line.
class Starter {
 public:
  Starter(const Options& options, const Site& site) : ranks_(options.ranks), hosts_(site.hosts) {}

  Launch launch(const std::string& name) const {
    Launch launch;
    launch.name = name;
    launch.ranks = ranks_;
    if (hosts_ != nullptr) launch.hosts = hosts_->names();
    return launch;
  }
  Words start(int rank, Words command) const {
    return hosts_ != nullptr ? hosts_->enter(rank, command) : std::move(command);
  }

 private:
  int ranks_;
  const tools::VirtualHosts* hosts_;
};

/// What a process with ranks of tacc needs to know besides its number.
Words settingsOf(const Options& options) {
  return {std::to_string(options.ranks),
          options.memoryName(),
          options.algorithm,
          options.explains ? fmt::format("/proc/{}/fd/2", ::getpid()) : "-",
          std::to_string(options.streams),
          options.registers ? "registered" : "-",
          fmt::format("{}", options.timeout)};
}

Launch launchTacc(const Options& options, const Site& site) {
  const Starter starter(options, site);
  Launch launch = starter.launch("tacc");
  const int processes = options.threads ? 1 : options.ranks;
  const std::string kind = !options.threads ? "tacc" : options.parallelInit ? "joining-threads" : "threads";
  for (int rank = 0; rank < processes; ++rank) {
    Words words = {ownProgram(), "--worker", kind, site.coordinator, std::to_string(rank)};
    launch.commands.push_back(starter.start(rank, words += settingsOf(options)));
  }
  return launch;
}

Launch launchBound(const Options& options, const Site& site) {
  Launch launch = Starter(options, site).launch("bound");
  launch.memory.emplace("tacc_bench_bound");
  for (int rank = 0; rank < options.ranks; ++rank)
    launch.commands.push_back({ownProgram(), "--worker", "bound", site.coordinator, std::to_string(rank),
                               std::to_string(options.ranks), std::to_string(launch.memory->descriptor())});
  return launch;
}

Launch launchPeer(const std::string& name, const Options& options, const Site& site) {
  const Starter starter(options, site);
  Launch launch = starter.launch(name);
  const std::string mpi = mpiOf(name);
  const std::string program = findPeerProgram(mpi, options);
  if (name == "gloo") {
    launch.directory.emplace();
    for (int rank = 0; rank < options.ranks; ++rank) {
      Words words = {program, site.coordinator, std::to_string(rank), std::to_string(options.ranks)};
      words += {launch.directory->path(), site.hosts != nullptr ? "eth0" : "lo"};
      launch.commands.push_back(starter.start(rank, words += extraArguments(name, options)));
    }
    return launch;
  }
  if (mpi == "openmpi") launch.directory.emplace();
  Words words = mpi == "mpich" ? mpichLauncher(options, site.hosts)
                               : openMpiLauncher(options, launch.directory->path(), site.hosts);
  if (isPreloaded(name)) words += {"env", "LD_PRELOAD=" + findPreloaded()};
  // A launcher talks to the others of its kind, so it runs on a host too.
  launch.commands.push_back(starter.start(0, words += {program, site.coordinator}));
  return launch;
}

}  // namespace

TemporaryDirectory::TemporaryDirectory() {
  std::string name = (fs::temp_directory_path() / "tacc_bench.XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::system_error(errno, std::generic_category(), "mkdtemp " + name);
  path_ = name;
}

TemporaryDirectory::TemporaryDirectory(TemporaryDirectory&& other) noexcept : path_(std::exchange(other.path_, "")) {}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

bool isPreloaded(std::string_view name) noexcept { return name.ends_with(preloadedEnding); }

std::vector<std::string> peerNames() { return {"mpich", "openmpi", "gloo", "mpich+tacc", "openmpi+tacc"}; }

Launch launch(const std::string& name, const Options& options, const Site& site) {
  if (name == "tacc") return launchTacc(options, site);
  if (name == "bound") return launchBound(options, site);
  return launchPeer(name, options, site);
}

Launch launchRank(const std::string& name, const Options& options, const std::string& coordinator, int rank) {
  Launch launch;
  launch.name = name;
  launch.ranks = 1;
  launch.firstRank = rank;
  Words words;
  if (name == "tacc") {
    words = {ownProgram(), "--worker", name, coordinator, std::to_string(rank)};
    words += settingsOf(options);
  } else {
    words = {findPeerProgram(name, options), coordinator};
    words += extraArguments(name, options);
  }
  launch.commands.push_back(std::move(words));
  return launch;
}

}  // namespace tacc::bench
