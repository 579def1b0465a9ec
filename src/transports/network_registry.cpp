// The kinds of network transports, in the order of preference. What this build lacks is listed too.
#include "transports/transport_functions.hpp"

namespace tacc {
namespace {

#define TACC_KIND(name, Functions, isBuilt, overTcp, keepsPorts, package, summary) \
  {#name, summary, package, (isBuilt) != 0 ? make##Functions##Transport : nullptr, \
   (isBuilt) != 0 ? describe##Functions : nullptr},
constexpr NetworkTransportKind kinds[] = {TACC_TRANSPORTS(TACC_KIND)};
#undef TACC_KIND

}  // namespace

std::span<const NetworkTransportKind> networkTransports() { return kinds; }

}  // namespace tacc
