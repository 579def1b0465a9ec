// What one rank does of a plan, as an actor of SimGrid.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <queue>
#include <simgrid/s4u.hpp>
#include <vector>

#include "selection/cost/message_graph.hpp"

namespace tacc::sim {

/// Two ranks of which one sends the other messages.
struct Pair {
  int sender = 0, receiver = 0;
  std::size_t messages = 0;  // in the plan
  double latency = 0, bytesPerSecond = 0;
  simgrid::s4u::Mailbox* mailbox = nullptr;
};

/// What all actors read.
struct Script {
  const MessageGraph* traffic = nullptr;
  int chunks = 1, window = 4;
  std::vector<simgrid::s4u::Host*> hosts;  // per rank
  std::vector<Pair> pairs;
};

/// Lives on the actor's stack. One loop: do what has become possible, then wait for the first thing that changes it.
class RankActor {
 public:
  RankActor(const Script& script, int rank);
  /// Returns when the rank is done with all chunks.
  void run();

 private:
  struct Chunk {
    int number = 0;
    std::size_t step = 0;
    int openSends = 0;
  };
  struct Token {  // travels with a message
    int message, chunk;
  };
  struct Arrival {
    double time;
    Token token;
    bool operator>(const Arrival& other) const { return time > other.time; }
  };
  struct Incoming {
    std::size_t left = 0;  // messages that no receive is open for
    Token* landed = nullptr;
  };
  struct Wait {
    int pair;
    bool isSend;
  };

  bool progress();
  bool deliver();
  bool finishWork();
  bool beginWork();
  void finishStep(Chunk& chunk);
  bool retire();
  void admit();
  void sleepUntilChange();
  void complete(std::size_t wait);
  simgrid::s4u::CommPtr startFirst(int pair);
  bool isReady(const Chunk& chunk);
  std::size_t placeOf(int message) const;
  std::vector<char>& arrivedOf(int chunk);

  const Script& script_;
  const std::vector<TrafficStep>& steps_;
  int completed_ = 0, admitted_ = 0;
  std::deque<Chunk> active_;  // in order
  bool isBusy_ = false;       // the CPU, with a step of one chunk
  double busyUntil_ = 0;
  int busyChunk_ = 0;
  std::map<int, std::deque<Token>> outgoing_;  // by pair: the first is on its way
  std::map<int, Incoming> incoming_;           // by pair
  std::vector<int> receives_;                  // messages of the plan to this rank, sorted
  std::map<int, std::vector<char>> arrived_;   // by chunk: whether receives_[i] has arrived
  /// Whose bytes are all here, but whose latency is not over.
  std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> arrivals_;
  std::vector<simgrid::s4u::CommPtr> comms_;
  std::vector<Wait> waits_;  // of comms_
};

}  // namespace tacc::sim
