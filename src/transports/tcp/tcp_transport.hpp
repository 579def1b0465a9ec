// TCP without a library in between: one connection between two ranks, made when the first of them sends something.
#pragma once

#include <memory>
#include <string>

#include "transports/network_transport.hpp"

namespace tacc {

std::unique_ptr<NetworkTransport> makeTcpTransport(const NetworkOptions& options);
std::string describeTcp();

}  // namespace tacc
