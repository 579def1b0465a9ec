// What one chunk of a call does to a machine, from what its plan exchanges instead of its single messages.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "algorithms/exchanges.hpp"
#include "core/index.hpp"
#include "selection/cost/cost_machine.hpp"

namespace tacc {

/// What the engine can make of one chunk.
struct ChunkCost {
  double alone = 0;    // seconds from its beginning to its end on the last rank
  double busiest = 0;  // seconds of them in which the busiest port, uplink or CPU is at work
  double held = 0;     // seconds from the first step of a rank to its last, of the rank that takes longest
};

/// Seconds of `chunks` alike, `window` of them under way together.
double secondsOf(const ChunkCost& chunk, int chunks, int window);

/// Takes the phases of a plan in the order in which they follow one another, and follows every rank through them: when
/// it is ready for the next, and what its port, its CPU and the links on the way have to do.
///
/// Messages of a phase that start together share links evenly; those of two phases are not seen to meet. Chunks behind
/// one another can go no faster than the busiest port, uplink or CPU. Cost: the ranks times the levels, per phase; of
/// exchanges of more than `mostRanks` it follows the ranks of some groups only, as the others do alike.
class CostLoad {
 public:
  /// `blockBytes`: of a block of the plan, in this chunk.
  CostLoad(const CostMap& map, double blockBytes, int mostRanks);

  /// `isPrefix`: of a scan, in which low ranks receive less than the others.
  ChunkCost priceOf(const Exchanges& exchanges, bool isPrefix);

 private:
  /// To whom a rank sends; itself: nobody.
  using To = std::function<int(int)>;

  /// One message of an exchange and those that share its links: to whom, where they meet, seconds for a byte.
  struct Route {
    int to = 0, meet = 0;
    int receiver =
        -1;  // `to`, if it is followed; else the sender, if what comes to it is from one that is not; -1: nobody
    double perByte = 0;
  };

  /// Messages of a rank that share its port, each of which takes so long alone.
  double inFlight(double seconds) const;
  void findTogether(const std::vector<Phase>& phases);
  void run(const Phase& phase, const Phase* next);
  void exchange(const Exchange& phase, const Exchange* next);
  /// Bytes that come to each rank beside those of the exchange whose routes are found, from ranks that have no part in
  /// it and are ready for the next one.
  std::vector<double> early(const Exchange& next) const;
  void flow(const Exchange& phase);
  void flowRound(const Exchange& phase, const std::vector<int>& cycle);
  void everyToEvery(const EveryToEvery& phase);
  void star(const Star& phase);
  void trees(const TreeExchange& phase);
  void copy(const Copy& phase);
  class TreeWalk;

  /// Routes of these ranks in an exchange; each message leaves `bytes` on its links.
  void findRoutes(const To& to, double bytes, const std::vector<int>& ranks);
  void findReceivers(double bytes, const std::vector<int>& ranks);
  bool isFollowed(int rank) const { return isFollowed_.empty() || isFollowed_[at(rank)]; }
  void chooseSample(int mostRanks);
  /// Adds the load of one message.
  void load(int from, int to, double bytes);
  /// How many messages cross each link inside a level's groups.
  std::vector<double> everyRoute(const EveryToEvery& phase, int level) const;
  /// How many messages leave ranks [begin, end) for others.
  double crossing(const EveryToEvery& phase, int begin, int end) const;

  /// Seconds for a byte over the uplink of a group; 0: it is never the limit.
  double perByteOf(int level, int group) const;
  double overhead() const { return map_.machine().overhead; }
  double gamma() const { return map_.machine().gamma; }
  /// A rank works on a step from `begin` on, and is busy with it, or with sending what came of it, until `end`.
  void occupy(int rank, double begin, double end);
  double busiest() const;

  const CostMap& map_;
  double block_;                        // bytes
  std::vector<double> ready_;           // per rank: when it is through with its steps so far
  std::vector<double> begun_, done_;    // per rank: its first step, and when its last messages have left
  std::vector<double> out_, in_, own_;  // per rank: bytes at its port each way, seconds of CPU
  std::vector<std::vector<double>> groupOut_, groupIn_;  // per level and group: bytes
  std::vector<std::vector<double>> wire_;                // per level: bytes over each link inside its groups
  std::vector<int> everybody_, followed_;                // ranks; the latter in exchanges
  std::vector<bool> isFollowed_;                         // empty: all are
  std::vector<std::vector<double>> followedShare_;       // per level and group: of its ranks
  std::size_t phase_ = 0;                                // that is followed
  std::vector<std::vector<int>> together_;  // of a prefix, per phase and rank: messages that start with what it sends
  int source_ = -1;                         // Exchanges::source
  std::map<int, double> sourceEnds_;        // of what it sent last to each of its partners
  std::vector<Route> routes_;               // per rank, of an exchange
  std::vector<MessageCut> cuts_;            // and its messages
  std::vector<std::vector<int>> crossOut_, crossIn_;  // per level and group: messages of an exchange; else 0
};

}  // namespace tacc
