// The parts of the proof that verify() puts together. Internal to the verifier.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "algorithms/plan.hpp"
#include "algorithms/verifier.hpp"

namespace tacc::proof {

/// "twoshot allreduce, rank 3, round 1, step 5": the step's place, for messages.
std::string placeOf(const Plan& plan, int rank, std::size_t step);

/// Every step by itself: operands, indices, peers, order of rounds.
void checkForm(const Plan& plan);

struct StepRef {
  const Step* step;
  int rank;
  int index;  // within the rank
};

/// One message, over `blockCount` blocks. Steps are numbered over all ranks.
struct ProvenMessage {
  int sender;
  int receiver;
  int sendStep;
  int receiveStep;
  int firstValue;  // where its blocks lie when those of all messages are put one after the other
};

/// All steps and messages of a plan whose form is right.
struct Exchange {
  std::vector<StepRef> steps;  // by rank, then in the rank's order
  std::vector<int> firstStep;  // of a rank; one more at the end
  std::vector<int> byRound;    // all steps, by round, within it by rank
  std::vector<ProvenMessage> messages;
  std::vector<int> firstSent;      // of a step: its messages are numbered in the order of its destinations
  std::vector<int> received;       // message numbers, by step, in the order of its sources
  std::vector<int> firstReceived;  // of a step, in `received`; one more at the end
  int values = 0;                  // blocks of all messages
};

/// Pairs sends and receives, and proves that they fit.
Exchange matchMessages(const Plan& plan);

/// The blocks of all buffers of all ranks, numbered; aliased blocks have one number.
class Cells {
 public:
  Cells(const Plan& plan, bool inPlace);
  int count() const noexcept { return count_; }
  /// Block `index` of a buffer; not for peers.
  int cellOf(int rank, Operand::Kind kind, int index) const noexcept;

 private:
  struct Bases {
    int output;
    int scratch;
    int input;
  };
  const Plan& plan_;
  bool inPlace_;
  std::vector<Bases> bases_;
  int count_ = 0;
};

/// Conflicts within rounds, contents of all outputs. Fills in reductionOrder. Of every step, numbered over all ranks:
/// whether it combines the last contributions to its blocks.
std::vector<bool> proveDataflow(const Plan& plan, const Exchange& exchange, const Cells& cells,
                                Certificate& certificate);

/// Fills in the counts and the longest chain.
void measureTraffic(const Plan& plan, const Exchange& exchange, Certificate& certificate);

/// How many messages may be overwritten at their source before they have been taken (see Certificate).
std::uint64_t countOverwritten(const Plan& plan, const Exchange& exchange, const Cells& cells);

}  // namespace tacc::proof
