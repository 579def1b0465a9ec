#include "api/operators.hpp"

#include <cstring>

#include "core/error.hpp"
#include "core/types.hpp"

namespace tacc {

namespace {
constexpr std::uint32_t slotsPerFamily = 65536;
constexpr std::uint32_t families = 32767;  // taccNumOps + families * slotsPerFamily <= taccMaxRedOp
constexpr std::size_t slotsHeldBack = 64;  // destroyed slots that wait before one of them is used again
}  // namespace

void OperatorTable::reset(std::uint64_t communicatorSerial) {
  family_ = static_cast<std::uint32_t>(communicatorSerial % families);
  operators_.clear();
  free_.clear();
}

OperatorTable::Operator& OperatorTable::place(taccRedOp_t& number) {
  std::size_t slot;
  const bool full = operators_.size() == slotsPerFamily;
  if (free_.size() > slotsHeldBack || (full && !free_.empty())) {
    slot = free_.front();
    free_.pop_front();
  } else if (!full) {
    slot = operators_.size();
    operators_.emplace_back();
  } else {
    fail(taccInvalidUsage, "the communicator has {} operators already; destroy some with taccRedOpDestroy",
         slotsPerFamily);
  }
  number = static_cast<taccRedOp_t>(taccNumOps + family_ * slotsPerFamily + slot);
  operators_[slot] = {};
  operators_[slot].live = true;
  return operators_[slot];
}

taccRedOp_t OperatorTable::create(const void* scalar, taccDataType_t type) {
  taccRedOp_t number{};
  Operator& made = place(number);
  std::memcpy(made.factor, scalar, sizeOf(type));
  made.type = type;
  return number;
}

taccRedOp_t OperatorTable::create(const UserReduction& reduction) {
  taccRedOp_t number{};
  place(number).user = reduction;
  return number;
}

std::size_t OperatorTable::slotOf(taccRedOp_t op) const {
  const auto number = static_cast<std::uint32_t>(op) - taccNumOps;
  if (op < taccNumOps || number / slotsPerFamily >= families) {
    fail(taccInvalidArgument,
         "op {} is neither a reduction (0 to {}) nor an operator made by taccRedOpCreatePreMulSum or "
         "taccRedOpCreateUser",
         static_cast<int>(op), taccNumOps - 1);
  }
  const std::size_t slot = number % slotsPerFamily;
  if (number / slotsPerFamily != family_ || slot >= operators_.size()) {
    fail(taccInvalidArgument,
         "op {} is not an operator of this communicator; operators belong to the communicator that "
         "they were made on",
         static_cast<int>(op));
  }
  if (!operators_[slot].live) fail(taccInvalidArgument, "op {} has been destroyed", static_cast<int>(op));
  return slot;
}

void OperatorTable::destroy(taccRedOp_t op) {
  if (op >= 0 && op < taccNumOps) {
    fail(taccInvalidArgument, "op {} ({}) is built in and cannot be destroyed", static_cast<int>(op), nameOf(op));
  }
  const std::size_t slot = slotOf(op);
  free_.push_back(slot);
  operators_[slot].live = false;
}

void OperatorTable::apply(taccRedOp_t op, Call& call) const {
  const Operator& found = operators_[slotOf(op)];
  call.op = taccSum;
  if (found.user.function != nullptr) {
    call.user = &found.user;
    return;
  }
  if (found.type != call.type) {
    fail(taccInvalidArgument, "op {} was made for datatype {} and cannot be used with {}", static_cast<int>(op),
         nameOf(found.type), nameOf(call.type));
  }
  call.factor = found.factor;
}

}  // namespace tacc
