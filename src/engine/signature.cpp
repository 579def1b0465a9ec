#include "engine/signature.hpp"

#include <string_view>

#include "base/error.hpp"
#include "base/types.hpp"

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
    default:
      return nameOf(static_cast<taccRedOp_t>(op));
  }
}

}  // namespace

std::string describeSignature(std::uint64_t signature) {
  const auto collective = static_cast<Collective>(signature >> 8 & 0xf);
  const auto type = static_cast<taccDataType_t>(signature >> 4 & 0xf);
  const auto op = static_cast<int>(signature & 0xf);
  if (collective == Collective::barrier) return "barrier()";
  std::string text = fmt::format("{}(count {}, {}", nameOf(collective), signature >> 28, nameOf(type));
  if (isReduction(collective)) text += fmt::format(", {}", nameOfOperation(op));
  if (isRooted(collective)) text += fmt::format(", root {}", signature >> 12 & 0xffff);
  const auto digest = signature >> 12 & 0xffff;
  if (!isRooted(collective) && digest != 0) text += fmt::format(", several together, sizes {:04x}", digest);
  return text + ")";
}

}  // namespace tacc
