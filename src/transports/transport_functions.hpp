// What makes and describes each transport between hosts, by its name in core/transports.hpp.
#pragma once

#include <memory>
#include <string>

#include "core/transports.hpp"
#include "transports/network_transport.hpp"

namespace tacc {

// makeTcpTransport(), describeTcp() and so on, as NetworkTransportKind::make and ::describe. Makers throw
// taccSystemError; makeMpiTransport() takes NetworkOptions::plugin, which belongs to the transport from then on, and
// throws taccInvalidUsage without one and taccInvalidArgument where it is not filled in as it must be. Those that this
// build lacks are nowhere defined.
#define TACC_DECLARE_TRANSPORT(name, Functions, ...)                                           \
  std::unique_ptr<NetworkTransport> make##Functions##Transport(const NetworkOptions& options); \
  std::string describe##Functions();
TACC_TRANSPORTS(TACC_DECLARE_TRANSPORT)
#undef TACC_DECLARE_TRANSPORT

}  // namespace tacc
