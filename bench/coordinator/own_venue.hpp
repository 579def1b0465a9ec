#pragma once

#include <map>
#include <optional>

#include "coordinator/options.hpp"
#include "coordinator/venue.hpp"

namespace tacc::bench {

/// Ranks that this process starts: on this machine, or on a virtual cluster on it.
class OwnVenue final : public Venue {
 public:
  /// Makes the virtual cluster, if the options ask for one, and looks for the programs of all contestants. Throws
  /// std::runtime_error where one is not there. `options` outlives it.
  explicit OwnVenue(const Options& options);

  std::unique_ptr<Team> start(const std::string& name) override;
  int ranksHere() const override { return options_.ranks; }
  const tools::VirtualHosts* hosts() const override { return hosts_ ? &*hosts_ : nullptr; }

 private:
  const Options& options_;
  std::optional<tools::VirtualHosts> hosts_;
  Listener listener_;
  std::map<std::string, Launch> launches_;  // of those that have not started
};

}  // namespace tacc::bench
