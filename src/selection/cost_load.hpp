// What one chunk of a call does to a machine, put together from patterns of messages instead of single messages.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "algorithms/tree.hpp"
#include "selection/cost_machine.hpp"
#include "selection/cost_simulator.hpp"

namespace tacc {

/// What the engine can make of one chunk.
struct ChunkCost {
  double alone = 0;     // seconds from its beginning to its end on the last rank
  double busiest = 0;   // seconds of them in which the busiest port, uplink or CPU is at work
  bool holds = true;    // ranks are busy with it until the end, so it takes one place of the window
  double stalling = 0;  // share of the waiting for places in which the busiest one cannot go on
};

/// Of `chunks` alike, `window` of them under way together.
double secondsOf(const ChunkCost& chunk, int chunks, int window);

/// Collects the patterns of a plan in the order in which they follow one another.
///
/// Two things are known in the end: how long the chunk takes alone, and how long the busiest port, uplink or CPU is at
/// work for it. Chunks behind one another can go no faster than that. Uplinks and latencies are looked at for a sample
/// of the groups of each level. Cost: the sampled ranks times the levels, per pattern; trees: the ranks times the
/// levels.
class CostLoad {
 public:
  /// To whom a rank sends; itself: nobody.
  using To = std::function<int(int)>;

  struct Exchange {
    double repeats = 1;   // so many of them follow one another
    double bytes = 0;     // that a rank sends in each
    double messages = 1;  // in which it sends them
    double combined = 0;  // bytes that a receiver combines in each
    /// Every message goes on as it comes; else all of a repeat have come before the next one begins.
    bool flows = false;
    /// Without: it takes its time, but its direction of the links is free otherwise.
    bool loads = true;
  };

  explicit CostLoad(const CostMap& map);

  void exchange(const Exchange& exchange, const To& to);
  /// Everybody sends `bytes` to everybody else at once; then combines.
  /// `oneByOne`: in steps of one message each, which start before the CPU has handled all; else in one step.
  void everyToEvery(double bytes, double combined, bool oneByOne);
  /// The root sends `bytes` to everybody else at once, or they to the root.
  void rootToEvery(int root, double bytes, bool oneByOne) { star(root, bytes, 0, oneByOne, true); }
  void everyToRoot(int root, double bytes, double combined, bool oneByOne) {
    star(root, bytes, combined, oneByOne, false);
  }
  /// Bytes combined or copied by every rank, by itself.
  void local(double bytes);

  /// A message goes down (up) each edge of a tree: `bytes` for each rank below the edge, or of the same size for all.
  /// `members[rankOf(place)]` is the rank. Several trees at once: their longest time counts.
  struct TreeLoad {
    const Tree* tree = nullptr;
    double bytes = 0;
    bool isPerRank = false;
    double combinedPerChild = 0;        // bytes
    bool oneByOne = false;              // as in everyToEvery()
    std::span<const int> members = {};  // empty: the place's rank itself
  };
  void down(std::span<const TreeLoad> trees);
  void up(std::span<const TreeLoad> trees);

  /// Bytes that leave and enter one rank's port, besides.
  void atPort(int rank, double out, double in);

  /// Adds the load of one message, without its time.
  void loadEdge(int from, int to, double bytes);

  /// Adds to the path without any load: messages in a pipeline wait for those before them.
  void wait(double seconds) { path_ += seconds; }
  /// Chunks do not hold up those behind them: a rank is done with its part long before the chunk is at its end.
  void doNotHold() { holds_ = false; }

  /// Chunks keep the links busy without gaps: only neighbours exchange, or all at once.
  void doNotStall() { stalls_ = false; }

  /// The busiest port or CPU is so many times longer at work than its bytes need.
  void slowDown(double times) { slowdown_ = times; }
  /// Adds the load of an exchange, without its time.
  void loadOnly(const Exchange& part, const To& to) {
    const double before = path_;
    exchange(part, to);
    path_ = before;
  }

  double path() const noexcept { return path_; }
  double busiest() const;
  ChunkCost chunk() const;

  const CostMap& map() const noexcept { return map_; }
  /// Seconds for a byte over the uplink of a group; 0: it is never the limit.
  double perByteOf(int level, int group) const;
  /// Seconds of one message of `bytes` between two ranks that meet there, without contention.
  double hop(int level, double bytes) const;

 private:
  struct Sample {
    int group;
    int begin, end;
  };

  /// How many messages of an exchange share the busiest link inside a level's groups on the way of one of them.
  struct Sharing {
    double average = 1, most = 1;
  };

  Sharing shareWires(int level, const To& to, double bytes);
  /// Of everyToEvery(): how many messages cross each link inside a level's groups.
  std::vector<double> everyWay(int level) const;
  void needPorts();
  void star(int root, double bytes, double combined, bool oneByOne, bool isDown);
  double treeTime(const TreeLoad& load, bool isDown);

  const CostMap& map_;
  std::vector<std::vector<Sample>> samples_;  // per level but the last
  double path_ = 0;
  double port_ = 0, cpu_ = 0;           // of every rank: bytes each way, seconds of CPU
  std::vector<double> uplink_;          // per level: seconds in which the busiest uplink is at work each way
  std::vector<double> out_, in_, own_;  // per rank, of trees: bytes, bytes, seconds of CPU
  std::vector<std::vector<double>> groupOut_, groupIn_;
  std::vector<std::vector<double>> wire_;  // per level: bytes over each link inside its groups
  double slowdown_ = 1;
  bool holds_ = true, stalls_ = true;
};

}  // namespace tacc
