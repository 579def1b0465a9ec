// The connections over which the ranks of a communicator met, as they are left to what comes after.
#pragma once

#include <vector>

#include "comm/bootstrap/channel.hpp"

namespace tacc {

/// One rank's place in the tree. Each connection is open and proven, and holds whatever has come already.
struct ControlTree {
  struct Branch {
    Channel channel;
    int rank;
    std::vector<int> behind;  // ranks that are reached by way of it
  };

  std::vector<int> route;        // to rank 0, which is last; empty on rank 0
  Channel up{FileDescriptor()};  // to the first rank of the route
  std::vector<Branch> branches;  // of rank 0 and gateways
  std::vector<int> parents;      // rank 0 only: to whom each rank is connected
};

}  // namespace tacc
