// Draws faults and inflicts them on the ranks of a round.
#pragma once

#include <array>
#include <random>
#include <string_view>
#include <vector>

#include "chaos/board.hpp"
#include "support/virtual_cluster.hpp"

namespace tacc::chaos {

enum class Fault : int { kill, killWithChild, stop, longStop, unplug, longUnplug, strangers, memory, files, slow };
inline constexpr std::array<std::string_view, 10> faultNames = {
    "kill", "kill-with-child", "stop", "long-stop", "unplug", "long-unplug", "strangers", "memory", "files", "slow"};

class Saboteur {
 public:
  /// `hosts`: by rank, counted from 1. `faults`: those it may choose from.
  Saboteur(const test::VirtualCluster& cluster, std::vector<int> hosts, std::vector<pid_t> ranks, Board& board,
           std::vector<Fault> faults, std::mt19937& random)
      : cluster_(cluster),
        hosts_(std::move(hosts)),
        ranks_(std::move(ranks)),
        board_(board),
        faults_(std::move(faults)),
        random_(random) {}
  /// Undoes what can be undone.
  ~Saboteur();
  Saboteur(const Saboteur&) = delete;
  Saboteur& operator=(const Saboteur&) = delete;

  /// One more fault, of a rank that is still in a communicator.
  Fault strike();
  /// Ends faults whose time is over. To be called often.
  void attend();

 private:
  struct Pending {
    double when;
    int rank;  // to continue or to stop once more; -1: none
    int host;  // to plug; 0: none
    int bursts;
  };

  int chooseRank();
  void mark(int rank, double till);
  void letStrangersIn(int host);

  const test::VirtualCluster& cluster_;
  std::vector<int> hosts_;
  std::vector<pid_t> ranks_;
  Board& board_;
  std::vector<Fault> faults_;
  std::mt19937& random_;
  std::vector<Pending> pending_;
  std::vector<pid_t> strangers_;
};

}  // namespace tacc::chaos
