#include "coordinator/venue.hpp"

#include "support/output.hpp"

namespace tacc::bench {

OwnVenue::OwnVenue(const Options& options) : options_(options), listener_(options.cluster.has_value()) {
  tools::ProgressLine progress;
  if (options.cluster) {
    progress.show("making the virtual cluster");
    hosts_.emplace(*options.cluster, options.placement, options.ranks);
  }
  const Site site{listener_.address(), hosts()};
  const auto prepare = [&](const std::string& name) { launches_.emplace(name, launch(name, options, site)); };
  prepare(options.reference);
  for (const std::string& peer : options.peers) prepare(peer);
  if (options.bound && !hosts_) prepare("bound");
}

std::unique_ptr<Team> OwnVenue::start(const std::string& name) {
  auto prepared = launches_.extract(name);
  return std::make_unique<ProcessTeam>(std::move(prepared.mapped()), listener_);
}

}  // namespace tacc::bench
