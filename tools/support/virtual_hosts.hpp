#pragma once

#include <string>
#include <vector>

#include "support/cluster_shape.hpp"
#include "support/process.hpp"

namespace tacc::tools {

/// A virtual cluster that lives for one run, and where on it the ranks are. tools/cluster makes it; when this process
/// is killed it goes too.
class VirtualHosts {
 public:
  /// `placement`: block, cyclic or random[:SEED]. Throws std::runtime_error where there can be no virtual cluster.
  VirtualHosts(const ClusterShape& shape, const std::string& placement, int ranks);

  const ClusterShape& shape() const { return shape_; }
  /// Numbers of hosts, by rank.
  const std::vector<int>& hostsOfRanks() const { return hosts_; }
  /// Host names, by rank.
  std::vector<std::string> names() const;
  /// The command line that runs `command` on the host of `rank`.
  std::vector<std::string> enter(int rank, const std::vector<std::string>& command) const;
  /// A program that stands in for ssh between the hosts.
  const std::string& remoteShell() const { return remoteShell_; }

 private:
  std::vector<std::string> tool(const std::vector<std::string>& arguments) const;
  void place(const std::string& placement, int ranks);
  void await();

  ClusterShape shape_;
  std::string name_;
  std::string tool_;
  std::string remoteShell_;
  std::vector<int> hosts_;
  MemoryFile log_;
  Process keeper_;
};

}  // namespace tacc::tools
