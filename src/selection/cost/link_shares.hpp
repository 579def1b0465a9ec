// What each message under way gets of the links that it crosses: max-min shares. Links share evenly, and what a message
// cannot use, as another link or its own stream holds it back, goes to the others. Of very many messages each gets the
// least even share of its links.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "core/index.hpp"
#include "selection/cost/play_model.hpp"

namespace tacc {

class LinkShares {
 public:
  explicit LinkShares(const PlayModel& model);

  /// A message is on its way, under a number of the caller's; gone again.
  void add(int flow, int message);
  void remove(int flow);

  /// After those: calls changed(flow, rate) for each that gets another rate than before. Returns how many had to be
  /// looked at, again and again.
  template <class Changed>
  double settle(const Changed& changed) {
    const double looked = findRates();
    for (const int id : affected_) {
      Flow& flow = flows_[at(id)];
      flow.isAffected = false;
      if (!flow.isOpen || !take(flow)) continue;
      changed(id, flow.rate);
    }
    affected_.clear();
    return looked;
  }

 private:
  struct Flow {
    int message = 0;
    int limit = 0, nextLimit = 0;  // the link that holds it back
    double rate = 0, next = 0;
    bool isOpen = false, isAffected = false, isFixed = false;
  };
  struct Crossing {
    int flow, messages;
  };
  struct Link {
    std::vector<Crossing> flows;
    int messages = 0;   // of those
    int held = 0;       // of the flows, those that it holds back
    double demand = 0;  // what they would take if nothing else held them back
    double used = 0;    // what they get
    // While shares are found:
    std::vector<int> affected;  // of the flows
    double left = 0;            // of its capacity, for those
    int open = 0;               // and messages of them that have no share yet
    int others = 0;             // messages that keep their rates,
    int heldOthers = 0;         // and those of the flows that it holds back
    bool holds = false;         // one of the affected
    bool isDirty = false;       // other messages cross it than before
    bool isListed = false;
  };
  using Place = std::pair<double, int>;  // a share, and a link

  static bool isAsBefore(const Flow& flow);
  bool take(Flow& flow);
  bool isLimit(int link) const;
  void affect(int flow);
  double findRates();
  void listLinks();
  void fill();
  void fix(Flow& flow, double rate, int limit);
  std::size_t widen();
  bool mayBeWrong(const Link& link) const;
  void widenAt(int link);
  void shareEvenly();

  const PlayModel& model_;
  std::vector<double> alone_;  // per message: its rate if it were alone
  std::vector<Flow> flows_;
  int open_ = 0;  // of those
  std::vector<Link> links_;
  std::vector<int> dirty_, listed_;  // links
  std::vector<int> affected_;        // flows
  std::vector<Place> narrowest_;     // a heap
};

}  // namespace tacc
