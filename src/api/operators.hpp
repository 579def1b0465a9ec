// The operators that the program has made on one communicator: PreMulSum, and its own reductions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "comm/communicator.hpp"
#include "compute/reduce/reduce.hpp"
#include "tacc/tacc.h"

namespace tacc {

/// Operator numbers are taccNumOps + 65536 * (a number of the communicator) + slot, so that an operator of another
/// communicator is recognized. A destroyed operator's slot is used again as late as possible, for the same reason.
class OperatorTable {
 public:
  /// Starts empty, for a communicator with this serial number within the process.
  void reset(std::uint64_t communicatorSerial);

  /// Keeps a copy of *scalar, of at most 8 bytes.
  taccRedOp_t create(const void* scalar, taccDataType_t type);
  taccRedOp_t create(const UserReduction& reduction);
  void destroy(taccRedOp_t op);

  /// Makes `call` one of a live operator of this table: a sum with a factor, or with a reduction of the program. Fails
  /// with a sentence otherwise. What the call points to is valid until the operator is destroyed.
  void apply(taccRedOp_t op, Call& call) const;

 private:
  struct Operator {
    alignas(8) std::byte factor[8];
    taccDataType_t type;
    UserReduction user;  // without a function: it is a factor
    bool live;
  };
  Operator& place(taccRedOp_t& number);
  std::size_t slotOf(taccRedOp_t op) const;

  std::uint32_t family_ = 0;        // of this communicator, in [0, families)
  std::deque<Operator> operators_;  // grows without moving what is there
  std::deque<std::size_t> free_;
};

}  // namespace tacc
