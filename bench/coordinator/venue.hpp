#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "coordinator/options.hpp"
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
