// What a plan exchanges, phase by phase: who sends how many blocks to whom, without their places in memory and without
// a step for every rank and round. Each algorithm states it beside its plan; the cost model prices it, also for more
// ranks than a plan would be written for. tests/algorithms/exchanges_test.cpp proves that it is the plan's traffic.
//
// Phases follow one another on every rank: what a rank sends in one depends on what it received in those before it.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <variant>
#include <vector>

#include "algorithms/tree.hpp"

namespace tacc {

/// The messages in which a rank sends what it has to send: blocks of one after the other.
struct MessageCut {
  std::array<int, 3> blocks = {};
  int count = 0;
};

/// Every rank sends to one other at most and receives from one at most.
struct Exchange {
  std::function<int(int)> to;  // the receiver of a rank's messages; the rank itself: it sends nothing
  int blocks = 1;              // that a rank sends each time; of those that send the most, where `cut` says more
  int repeats = 1;             // times that it is sent one after the other, always to the same
  bool combines = false;       // what comes is added to what the receiver has
  /// With repeats: every message goes on as soon as it has come. Without: those of a repeat have all come before.
  bool flows = false;
  int messages = 1;                         // of equal length, in which the blocks go
  std::function<MessageCut(int)> cut = {};  // instead, where they differ from rank to rank
  int copiesMeanwhile = 0;                  // blocks that a rank copies in its memory while messages are on their way
};

/// Every rank sends `blocks` to every other at once, or to every other of its circle.
struct EveryToEvery {
  int blocks = 1;
  bool combines = false;
  bool oneByOne = false;  // in a step for each of them, else all of a rank start together
  int except = -1;        // a rank that neither sends nor receives; of one circle only
  // Circles: ranks stand in consecutive groups of this size, which divides them; 0: all ranks are one circle.
  int groupSize = 0;
  bool isBetweenGroups = false;  // the ranks of one place in all groups, else those of a group
  int messages = 1;              // of equal length, in which the blocks for one rank go

  /// How many of `ranks` are in a circle.
  int sizeOfCircle(int ranks) const noexcept {
    if (groupSize == 0) return ranks;
    return isBetweenGroups ? ranks / groupSize : groupSize;
  }
  /// How many of the ranks [begin, end) are in the circle of `rank`, itself with them.
  int peersIn(int rank, int begin, int end) const noexcept {
    if (groupSize == 0) return end - begin;
    const int place = rank % groupSize, first = rank - place;
    if (!isBetweenGroups) return std::max(0, std::min(end, first + groupSize) - std::max(begin, first));
    const auto below = [&](int bound) { return (bound + groupSize - 1 - place) / groupSize; };
    return below(end) - below(begin);
  }
};

/// One rank sends `blocks` to every other, or they to it.
struct Star {
  int center = 0;
  bool isOutward = false;
  int blocks = 1;
  bool combines = false;
  bool oneByOne = false;  // as in EveryToEvery
};

/// A message goes down (up) every edge of some trees.
struct TreeExchange {
  struct Member {
    std::shared_ptr<const Tree> tree;
    std::vector<int> ranks = {};  // ranks[tree->rankOf(place)]; empty: that is the rank
  };
  std::vector<Member> trees;  // all at once
  bool isDown = false;
  bool turns = false;        // after going up, every tree by itself goes down
  int blocks = 1;            // of each message
  bool isPerRank = false;    // that number for each place below the edge instead
  bool combines = false;     // a parent adds what its children send to what it has
  bool oneByOne = false;     // as in EveryToEvery
  int messages = 1;          // of `blocks` each, one behind the other: a rank hands each on while the next one comes
  bool isCutAtRoot = false;  // per rank: between the root and its children, where the numbers of the ranks start again
};

/// Every rank, or one, copies this number of blocks in its memory.
struct Copy {
  int blocks = 1;
  int only = -1;  // the rank; -1: every one
};

using Phase = std::variant<Exchange, EveryToEvery, Star, TreeExchange, Copy>;

struct Exchanges {
  int blocks = 1;  // of the plan
  std::vector<Phase> phases;
  /// A rank that receives nothing, and so hands all its messages to the network at once; -1: none does.
  int source = -1;
};

/// Whether every message goes from the rank whose block it is straight to the one that it is for, so that nobody
/// handles a block that is neither its own nor for it. For a gather, scatter or alltoall.
bool goesStraight(const Exchanges& exchanges) noexcept;

/// From every rank to the one `shift` further on, of all in a ring.
Exchange shiftBy(int shift, int ranks, int blocks, bool combines);

/// Any collective but alltoall on a tree, as writeOnTree() writes it.
Exchanges exchangesOnTree(const PlanRequest& request, Tree tree);

}  // namespace tacc
