// What one rank sends and receives, step by step: of its plan, or of what the plan exchanges.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "algorithms/exchanges.hpp"
#include "algorithms/plan.hpp"

namespace tacc {

struct PlayPart {
  struct OneStep {
    int blocks = 1;
    int sources = 0;
    int receives = 0, sends = 0;  // number of those below
  };
  std::vector<OneStep> steps;
  std::vector<int> from, to;                // peers in the order of the steps
  std::vector<std::pair<int, int>> sentTo;  // peer and number of the message among those of the rank, sorted
  int planBlocks = 1;

  void add(const Step& step);
  void copy(int blocks) { steps.push_back({blocks, 1, 0, 0}); }
  /// Takes `blocks` from each of some, adds them to its own where that is so, and sends as many to others.
  void pass(int blocks, const std::vector<int>& sources, bool combines, const std::vector<int>& destinations);
  void finish();
  /// The number of its `n`-th message to that peer; -1: there is none.
  int messageTo(int peer, int n) const;
};

/// Every rank's part in phases that are exchanges, copies, and messages of one length along trees.
class PhaseParts {
 public:
  /// About how many steps one rank has. nullopt: the exchanges are not served. There are other phases, or some in which
  /// not all take part; or long rings, whose messages are many and which are priced well without being played.
  static std::optional<std::size_t> stepsOf(const Exchanges& exchanges, int ranks);
  /// For exchanges of which stepsOf() is known; they stay with the caller.
  PhaseParts(const Exchanges& exchanges, int ranks);

  PlayPart partOf(int rank) const;

 private:
  struct Place {
    const TreeExchange::Member* member;
    int place;
  };

  void addTo(PlayPart& part, const Exchange& exchange, const std::vector<int>& senders, int rank) const;
  void addTo(PlayPart& part, const TreeExchange& trees, const std::vector<Place>& places) const;

  const Exchanges* exchanges_;
  std::vector<std::vector<int>> senders_;                // per phase and rank, of an exchange: who sends to it
  std::vector<std::vector<std::vector<Place>>> places_;  // per phase and rank: where it is in the trees
};

}  // namespace tacc
