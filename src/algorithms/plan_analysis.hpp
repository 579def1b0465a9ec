// The steps of all ranks of a plan and the messages between them, found once: what the proof, the lowering to shared
// memory and the simulators go by.
#pragma once

#include <string>
#include <vector>

#include "algorithms/plan.hpp"

namespace tacc {

/// "twoshot allreduce, rank 3, round 1, step 5": the step's place, for messages.
std::string placeOfStep(const Plan& plan, int rank, std::size_t step);

/// Views the plan, which must outlive it. Steps are numbered over all ranks: by rank, then in the rank's order.
struct PlanAnalysis {
  struct StepRef {
    const Step* step;
    int rank;
    int index;  // within the rank
  };
  /// The k-th message from one rank to another, found at both ends. Messages are numbered by the steps that send them,
  /// then in the order of the step's destinations.
  struct Message {
    int sender;
    int receiver;
    int sendStep;
    int receiveStep;
    int firstBlock;  // where its blocks lie when those of all messages are put one after the other
    friend bool operator==(const Message&, const Message&) = default;
  };

  std::vector<StepRef> steps;
  std::vector<int> firstStep;  // of a rank; one more at the end
  std::vector<int> byRound;    // all steps, by round, within it by rank
  std::vector<Message> messages;
  std::vector<int> firstSent;      // of a step, in `messages`; one more at the end
  std::vector<int> received;       // message numbers, by step, in the order of its sources
  std::vector<int> firstReceived;  // of a step, in `received`; one more at the end
  int messageBlocks = 0;           // of all messages

  /// Pairs sends and receives, and proves that they fit: in number, order, blocks and rounds. The form of each step
  /// must be right (proof::checkForm). Cost: linear in steps, messages and ranks. Throws Error (taccInvalidArgument).
  explicit PlanAnalysis(const Plan& plan);

  int roundOf(int step) const { return steps[static_cast<std::size_t>(step)].step->round; }
  int sendRound(const Message& message) const { return roundOf(message.sendStep); }
  int receiveRound(const Message& message) const { return roundOf(message.receiveStep); }
};

}  // namespace tacc
