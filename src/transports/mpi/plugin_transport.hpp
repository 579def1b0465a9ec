// Messages between hosts through functions that the program brings (tacc/transport.h): its MPI, for example.
#pragma once

#include <memory>
#include <string>

#include "transports/network_transport.hpp"

namespace tacc {

/// As NetworkTransportKind::make, from NetworkOptions::plugin, which belongs to the transport from then on. It cannot
/// sleep. Throws taccInvalidUsage without a plugin and taccInvalidArgument when it is not filled in as it must be.
std::unique_ptr<NetworkTransport> makePluginTransport(const NetworkOptions& options);

/// As NetworkTransportKind::describe.
std::string describePlugin();

}  // namespace tacc
