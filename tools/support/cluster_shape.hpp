#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tacc::tools {

/// A virtual cluster as --cluster describes it: its hosts, and the links from each of them to the core.
struct ClusterShape {
  struct Link {
    std::string name;  ///< of the host or the switch from which it leads on
    double mbit = 0;   ///< in each direction; 0: no limit
    bool operator==(const Link&) const = default;
  };
  struct Host {
    std::string name;
    std::vector<Link> links;  ///< its own first, then those of the switches that it is behind, from the inside
    bool operator==(const Host&) const = default;
  };

  /// From SUPERNODES,HOSTS_PER_SUPERNODE,HOST_MBIT,UPLINK_MBIT, or a topology file, which tools/cluster reads. Throws
  /// std::invalid_argument.
  static ClusterShape parse(const std::string& text);
  /// As it was given.
  const std::string& text() const { return text_; }
  /// Host 1 is the first.
  const std::vector<Host>& hosts() const { return hosts_; }
  int totalHosts() const { return static_cast<int>(hosts_.size()); }

 private:
  std::string text_;
  std::vector<Host> hosts_;
};

/// How many calls of `bytes` use up what the links let pass at once, so that later ones find every link at its rate.
/// Calls of some hundred bytes never use it up; they are as many as those of 8 KiB. 0 where no link has a rate.
int callsPerBurst(const ClusterShape& shape, size_t bytes);

}  // namespace tacc::tools
