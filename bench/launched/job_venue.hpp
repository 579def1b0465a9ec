#pragma once

#include "coordinator/options.hpp"
#include "coordinator/venue.hpp"
#include "launched/agent.hpp"
#include "launched/control.hpp"

namespace tacc::bench {

/// Rank 0's side of a job whose launcher has started all ranks.
class JobVenue final : public Venue {
 public:
  /// Both outlive it. From now on the others are at its disposal.
  JobVenue(Control& control, Agent& agent) : control_(control), agent_(agent) {}

  std::unique_ptr<Team> start(const std::string& name) override;
  int ranksHere() const override { return control_.ranksHere(); }

  /// Lets all agents do this, and waits for their answers, by rank and without the "ok". Throws std::runtime_error with
  /// that of the first that could not.
  std::vector<std::string> order(const std::string& order);

 private:
  Control& control_;
  Agent& agent_;
  size_t started_ = 0;
};

}  // namespace tacc::bench
