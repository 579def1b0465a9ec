// Between the calls of a communicator over several hosts and the choices that their times correct
// (selection/online/call_tuner.hpp): which calls learn together, what they should take, and what is told to people.
//
// Calls whose ranks all need one another's data are timed: allreduce, allgather, reduce-scatter. The time that counts
// is the least of all ranks': it is that of the rank that came last, which waited for nobody. Short calls of broadcast
// and reduce are timed too. Of their ranks some are done long before others and go on to the next call, so of many in a
// row the rank that spends most in them tells how long they take.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "selection/network_selector.hpp"
#include "selection/online/call_tuner.hpp"
#include "tacc/tacc.h"

namespace tacc {

class OnlineTuner {
 public:
  /// `all` chooses between all ranks, which is how they agree.
  explicit OnlineTuner(NetworkSelector& all);

  /// A call begins on this rank.
  void begin() noexcept;
  /// The algorithm of its part between hosts. The first part that is asked for in a call is what is timed. `bytes`: as
  /// in NetworkSelector::choose().
  const Algorithm& choose(NetworkSelector& selector, Collective collective, int root, std::size_t bytes);
  /// It is over. True: told() is to be replaced by what agreement() makes of all ranks' values, and agree() called.
  bool end();
  taccRedOp_t agreement() const noexcept;
  std::span<double> told() noexcept { return pending_->choice->window(); }
  /// What was decided, as a sentence; "" for nothing of interest.
  std::string agree();

  /// The algorithm of such calls outside explorations; null while that is the selector's.
  const Algorithm* settled(const NetworkSelector& selector, Collective collective, std::size_t bytes) const;
  /// What measuring has led to for such calls; a line of text, "" if they are not timed.
  std::string explain(const NetworkSelector& selector, Collective collective, std::size_t bytes) const;

  /// The numbers in the registry of what such calls may run: the chosen one, then those with prices near the least, the
  /// cheapest first. `candidates` are in the order of their prices.
  static std::vector<int> optionsOf(CallTuner::Kind kind, const Algorithm& chosen,
                                    const std::vector<NetworkCandidate>& candidates);

 private:
  using Clock = std::chrono::steady_clock;
  using Key = std::tuple<const NetworkSelector*, Collective, int>;
  /// Calls of a kind and a size up to the next power of two, from any root.
  struct Class {
    Collective collective;
    std::size_t bytes;                // the least
    double growth;                    // times as long that twice as many take, by the model
    int model;                        // what is chosen from the first call's root
    std::optional<CallTuner> choice;  // none: they are not timed
  };
  static Key keyOf(const NetworkSelector& selector, Collective collective, std::size_t bytes) noexcept;
  Class makeClass(NetworkSelector& selector, Collective collective, int root, std::size_t bytes);
  const Class* find(const NetworkSelector& selector, Collective collective, std::size_t bytes) const;

  double agreementSeconds_;
  std::map<Key, Class> classes_;
  bool isAsked_ = false;      // in the call that runs
  Class* pending_ = nullptr;  // whose call runs
  double factor_ = 1;         // from its time to that of a call of the class's least size
  Clock::time_point start_{};
};

}  // namespace tacc
