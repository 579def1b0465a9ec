// A call over several hosts as the engine runs it: what is called, and the plan that was chosen for it.
#pragma once

#include <cstddef>

#include "algorithms/registry.hpp"
#include "core/call.hpp"
#include "engine/net/plan_ranks.hpp"

namespace tacc {

struct NetworkCall {
  const Call& call;
  const Algorithm& algorithm;
  std::size_t messageBytes;  // about how long its messages are to be: into chunks of that the call is cut
  PlanOrder order = PlanOrder::hosts;
  int root = 0;  // as the plan numbers it
};

}  // namespace tacc
