#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "coordinator/options.hpp"
#include "support/process.hpp"
#include "support/virtual_hosts.hpp"

namespace tacc::bench {

/// A directory that is removed, with what is in it, at the end.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  TemporaryDirectory(TemporaryDirectory&& other) noexcept;
  TemporaryDirectory& operator=(TemporaryDirectory&&) = delete;
  ~TemporaryDirectory();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// How the ranks of a contestant come to life.
struct Launch {
  std::string name;
  int ranks = 0;
  int firstRank = 0;  ///< of the contestant's ranks, of which others may be started elsewhere
  /// The host that each rank must turn out to be on, by rank; empty on one node.
  std::vector<std::string> hosts;
  /// Each of these starts one or all of the ranks.
  std::vector<std::vector<std::string>> commands;
  /// Things that the ranks share.
  std::optional<TemporaryDirectory> directory;
  std::optional<tools::MemoryFile> memory;
};

/// The peers that --peer knows: mpich, openmpi, gloo; mpich+tacc and openmpi+tacc are the same programs with
/// libtacc_mpi preloaded.
std::vector<std::string> peerNames();
/// Whether a peer is one of the latter.
bool isPreloaded(std::string_view name) noexcept;

/// Where ranks run.
struct Site {
  std::string coordinator;                     ///< the address at which they find it
  const tools::VirtualHosts* hosts = nullptr;  ///< null: this node
};

/// The contestant of that name: tacc, bound, or a peer. Throws std::runtime_error if it cannot be started here.
Launch launch(const std::string& name, const Options& options, const Site& site);
/// One rank of it in a job whose launcher has started this process as that rank, at which the coordinator or its agent
/// listens. An MPI finds what its launcher gave this process.
Launch launchRank(const std::string& name, const Options& options, const std::string& coordinator, int rank);

}  // namespace tacc::bench
