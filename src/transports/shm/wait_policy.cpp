#include "transports/shm/waiter.hpp"

namespace tacc {
namespace {

// Of more ranks that take turns on a core a yield lasts for slices by itself, and others get little of the core.
constexpr int mostRanksOfCore = 4;
constexpr int relaxesPerMicrosecond = 20;  // about 50 ns each

}  // namespace

WaitPolicy chooseWaitPolicy(int ranks, int cores, std::optional<int> spinMicroseconds) {
  WaitPolicy policy;
  policy.oversubscribed = ranks > cores;
  if (policy.oversubscribed) {
    policy.sleepsAmongOthers = ranks <= mostRanksOfCore * cores;
    policy.spins = 10;
    policy.yields = 10;
  }
  if (spinMicroseconds) {
    policy.spins = *spinMicroseconds * relaxesPerMicrosecond;
    policy.competingSpinSeconds = 0;
  }
  return policy;
}

}  // namespace tacc
