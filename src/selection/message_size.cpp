#include "selection/message_size.hpp"

#include <algorithm>
#include <bit>

namespace tacc {
namespace {

// What a message takes on the wire: long enough that the work per message is little, short enough that several of them
// under way do not fill the buffers on the way, where the network then drops and sends again. On links of 200 Mbit/s an
// allreduce of 8 MiB takes 616 ms with messages of 16 KiB and 712 ms with 128 KiB; on loopback, at 2 GB/s, 47 and 33 ms
// for 64 MiB with 16 and 256 KiB. Where hosts share an uplink it is their share of that: on links of 1 Gbit/s, four of
// which share 250 Mbit/s, an allreduce of 4 MiB takes 141 ms with messages of 16 KiB, 145 with 32 and 157 with 64.
constexpr double messageSeconds = 1e-3;
constexpr std::size_t longestMessage = 256 * 1024;
// A longer message only delays a call's beginning and end, so a long call can have longer ones, each of which costs
// processor time. 16 MiB between 8 ranks on hosts of 500 Mbit/s, two of which share 250, with messages of 16, 32 and 64
// KiB: allreduce 568, 568 and 580 ms with 43, 20 and 21 ms of processor time a rank; reduce-scatter 281, 284 and 293
// with 20, 14 and 13; allgather 280, 279 and 282 with 16, 12 and 11. Beyond 64 KiB, which costs little already, only
// calls have longer ones that do not notice.
constexpr std::size_t messagesOfCall = 512, messagesOfLongCall = 1024;
constexpr std::size_t cheapMessage = 64 * 1024;

}  // namespace

std::size_t bytesOfAll(const PlanRequest& request, std::size_t bytes) {
  return partitionOf(request.collective) == Partition::split ? bytes : bytes * static_cast<std::size_t>(request.ranks);
}

std::size_t messageBytes(double bytesPerSecond, std::size_t bytes) {
  const auto ofTime = static_cast<std::size_t>(std::clamp(bytesPerSecond * messageSeconds, 0.0, 1e15));
  const std::size_t ofLink = std::clamp(ofTime, leastMessage, longestMessage);
  const std::size_t ofCall = std::max(std::min(bytes / messagesOfCall, cheapMessage), bytes / messagesOfLongCall);
  return std::bit_floor(std::clamp(ofCall, ofLink, longestMessage));
}

}  // namespace tacc
