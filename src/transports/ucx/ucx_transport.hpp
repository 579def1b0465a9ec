// Messages between hosts through UCX: tag matching over InfiniBand, RoCE and TCP.
#pragma once

#include <memory>
#include <string>

#include "transports/network_transport.hpp"

namespace tacc {

/// As NetworkTransportKind::make. Throws taccSystemError.
std::unique_ptr<NetworkTransport> makeUcxTransport(const NetworkOptions& options);

/// As NetworkTransportKind::describe.
std::string describeUcx();

}  // namespace tacc
