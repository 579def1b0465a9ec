#pragma once

#include <memory>
#include <string>

#include "coordinator/team.hpp"
#include "support/virtual_hosts.hpp"

namespace tacc::bench {

/// Where contestants come to life. Outlives the teams that it has started.
class Venue {
 public:
  Venue() = default;
  Venue(const Venue&) = delete;
  Venue& operator=(const Venue&) = delete;
  virtual ~Venue() = default;

  /// All ranks of the contestant of that name; they have not joined yet. Throws std::runtime_error.
  virtual std::unique_ptr<Team> start(const std::string& name) = 0;
  /// Ranks of a contestant on this machine.
  virtual int ranksHere() const = 0;
  /// The virtual hosts of the ranks; null where there are none.
  virtual const tools::VirtualHosts* hosts() const { return nullptr; }
};

}  // namespace tacc::bench
