#include "engine/signature.hpp"

#include <string_view>

#include "core/error.hpp"
#include "core/types.hpp"

namespace tacc {
namespace {

std::string_view nameOfOperation(int op) {
  switch (op) {
    case preMulSumCode:
      return "mulsum";
    case updateCode:
      return "update";
    case exchangeCode:
      return "EASGD exchange";
    case userCode:
    case orderedUserCode:
      return "an operation of the program";
    default:
      return op < taccNumOps ? nameOf(static_cast<taccRedOp_t>(op)) : "no operation";
  }
}

}  // namespace

std::string describeSignature(std::uint64_t signature) {
  const Collective collective = collectiveIn(signature);
  const taccDataType_t type = typeIn(signature);
  const int op = operationIn(signature);
  if (collective == Collective::barrier) return "barrier()";
  // What a peer wrote into shared memory, or sent, need not be a call.
  if (collective > Collective::barrier) return fmt::format("no call (signature {:#x})", signature);
  const bool isUnequal = isReduction(collective)
                             ? collective == Collective::reduceScatter && rootIn(signature) == unequalRoot
                             : op == unequalCode;
  std::string text = isUnequal ? fmt::format("{}v({}", nameOf(collective), nameOf(type))
                               : fmt::format("{}(count {}, {}", nameOf(collective), countIn(signature), nameOf(type));
  if (isUnequal && countIn(signature) != 0) text += fmt::format(", count {} of this pair", countIn(signature));
  if (isReduction(collective)) text += fmt::format(", {}", nameOfOperation(op));
  if (isRooted(collective)) text += fmt::format(", root {}", rootIn(signature));
  const int digest = rootIn(signature);
  if (!isRooted(collective) && !isUnequal && digest != 0)
    text += fmt::format(", several together, sizes {:04x}", digest);
  return text + ")";
}

}  // namespace tacc
