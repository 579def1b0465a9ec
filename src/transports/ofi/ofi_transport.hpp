// Messages between hosts through libfabric (OFI): tagged messages of reliable datagram endpoints.
#pragma once

#include <memory>
#include <string>

#include "transports/network_transport.hpp"

namespace tacc {

/// As NetworkTransportKind::make. Throws taccSystemError.
std::unique_ptr<NetworkTransport> makeOfiTransport(const NetworkOptions& options);

/// As NetworkTransportKind::describe.
std::string describeOfi();

}  // namespace tacc
