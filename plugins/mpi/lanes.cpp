#include "lanes.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "meeting.hpp"
#include "plugin.hpp"

namespace tacc::mpi {
namespace {

/// Each has a thread once it is started.
constexpr std::size_t mostLanes = 64;

/// The lowest one that is free on all ranks; their number where there is none. All ranks have as many, as all make them
/// together; but requests are freed by each by itself.
std::size_t findFree(const Communicator& communicator) {
  const auto& lanes = communicator.lanes;
  std::vector<int> mine, any(lanes.size());
  for (const std::shared_ptr<Communicator>& lane : lanes)
    mine.push_back(lane->isTaken.load(std::memory_order_acquire) ? 1 : 0);
  reduceOfAll(mine.data(), any.data(), static_cast<int>(mine.size()), MPI_INT, MPI_MAX, communicator.mpi);
  return static_cast<std::size_t>(std::ranges::find(any, 0) - any.begin());
}

/// Before it all ranks are here: whoever splits owes nobody the progress of a message.
bool splitOff(const Communicator& communicator, Communicator& lane) {
  taccConfig_t config = TACC_CONFIG_INITIALIZER;
  config.operationTimeout = 0;
  const taccResult_t result = taccCommSplit(communicator.tacc, 0, communicator.rank, &lane.tacc, &config);
  int isMade = result == taccSuccess, areMade = 0;
  reduceOfAll(&isMade, &areMade, 1, MPI_INT, MPI_MIN, communicator.mpi);
  if (areMade != 0) return true;
  if (lane.tacc != nullptr) taccCommAbort(std::exchange(lane.tacc, nullptr));
  return false;
}

/// The lane, free again when the last copy of the pointer has gone.
std::shared_ptr<Communicator> taken(const std::shared_ptr<Communicator>& lane) {
  lane->isTaken.store(true, std::memory_order_relaxed);
  return {lane.get(), [lane](Communicator* own) { own->isTaken.store(false, std::memory_order_release); }};
}

}  // namespace

std::shared_ptr<Communicator> takeLane(Communicator& communicator) {
  // What is under way on the communicator itself uses the tacc communicator that is split.
  if (communicator.underWay.load(std::memory_order_acquire) > 0) plugin().requests.drain(communicator);
  if (communicator.lanes.empty())
    meet(communicator.mpi);
  else if (const std::size_t free = findFree(communicator); free < communicator.lanes.size())
    return taken(communicator.lanes[free]);
  if (communicator.lanes.size() == mostLanes) return nullptr;
  auto lane = std::make_shared<Communicator>();
  lane->mpi = communicator.mpi;
  lane->rank = communicator.rank;
  lane->ranks = communicator.ranks;
  if (!splitOff(communicator, *lane)) return nullptr;
  communicator.lanes.push_back(lane);
  return taken(lane);
}

void endLanes(Communicator& communicator) noexcept {
  for (const std::shared_ptr<Communicator>& lane : communicator.lanes) {
    if (lane->tacc != nullptr) taccCommDestroy(std::exchange(lane->tacc, nullptr));
    if (lane->stream != nullptr) taccStreamDestroy(std::exchange(lane->stream, nullptr));
  }
  communicator.lanes.clear();
}

}  // namespace tacc::mpi
