// How each message of a plan travels between ranks of one node: by reference, put or staged.
#pragma once

#include <cstdint>
#include <vector>

#include "algorithms/plan.hpp"
#include "engine/shm/happens_before.hpp"
#include "engine/shm/program.hpp"

namespace tacc {

enum class Delivery : std::uint8_t { staged, byReference, put };

struct Delivered {
  PlanAnalysis::Message message;
  Delivery delivery = Delivery::staged;
  Operand from{};              // byReference: which of the sender's operands the receiver reads
  Operand to{};                // put: which of the receiver's operands the sender writes
  bool isThereBefore = false;  // byReference: the sender's step finds the contents there, and does not make them
  friend bool operator==(const Delivered&, const Delivered&) = default;
};

/// Decides for every message, in the order of senders, then receivers. A message that is read by reference, or put,
/// touches a buffer at another time than its owner would; it is allowed only where every conflicting access of that
/// buffer is ordered by what the ranks know (HappensBefore).
std::vector<Delivered> chooseDeliveries(const Plan& plan, const PlanAnalysis& analysis, const HappensBefore& order,
                                        const LoweringFacts& facts);

}  // namespace tacc
