// What every rank is told when all have joined.
#pragma once

#include <vector>

#include "comm/bootstrap/channel.hpp"
#include "transports/inet_address.hpp"

namespace tacc {

struct Completion {
  bool allUnix;             // every rank is connected to rank 0, over a unix socket
  InetAddress::V6 address;  // of the sender's host, where it reached its own parent; zero: the sender is rank 0
  std::vector<int> route;   // from the sender, which is first, to rank 0
};

Payload payloadOf(const Completion& completion);
/// Throws taccInternalError for a message that is none.
Completion completionIn(const Message& message);

}  // namespace tacc
