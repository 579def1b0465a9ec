// The PreMulSum operators of one communicator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "tacc/tacc.h"

namespace tacc {

/// Operator numbers are taccNumOps + 65536 * (a number of the communicator) + slot, so that an operator of another
/// communicator is recognized. A destroyed operator's slot is used again as late as possible, for the same reason.
class OperatorTable {
 public:
  /// Starts empty, for a communicator with this serial number within the process.
  void reset(std::uint64_t communicatorSerial);

  /// Keeps a copy of *scalar.
  taccRedOp_t create(const void* scalar, taccDataType_t type);
  void destroy(taccRedOp_t op);

  /// The factor of a live operator of this table, to be used with `type`; fails with a sentence otherwise. The pointer
  /// is valid until the operator is destroyed.
  const void* factorFor(taccRedOp_t op, taccDataType_t type) const;

 private:
  struct Operator {
    alignas(8) std::byte factor[8];
    taccDataType_t type;
    bool live;
  };
  std::size_t slotOf(taccRedOp_t op) const;

  std::uint32_t family_ = 0;        // of this communicator, in [0, families)
  std::deque<Operator> operators_;  // grows without moving what is there
  std::deque<std::size_t> free_;
};

}  // namespace tacc
