#include <vector>

#include "comm/call_signature.hpp"
#include "comm/direct_update.hpp"
#include "comm/node/node_communicator.hpp"
#include "core/types.hpp"
#include "engine/partition.hpp"

namespace tacc {

std::pair<std::size_t, std::size_t> ownPart(std::size_t count, int ranks, int rank) noexcept {
  return {blockBegin(count, ranks, rank, sizeof(float)), blockBegin(count, ranks, rank + 1, sizeof(float))};
}

bool NodeCommunicator::updateNow(const DirectUpdate& update) {
  try {
    waiter_.checkErrors();
    return runDirectly(update);
  } catch (...) {
    reportFailure();
  }
}

bool NodeCommunicator::runDirectly(const DirectUpdate& update) {
  const std::uint64_t signature = signatureOf(update);
  exchange_.begin(signature, linePayload);
  const std::size_t bytes = update.count * sizeof(float);
  const bool hasCompanions = update.companions != nullptr;
  const UserBuffers mine{reinterpret_cast<const std::byte*>(update.companions), hasCompanions ? bytes : 0,
                         reinterpret_cast<std::byte*>(update.numbers), bytes, false};
  const LoweringFacts facts = buffers_
                                  .run(
                                      mine, [&](int) { return mine; }, lastSeconds_, callBuffers_)
                                  .facts;
  if (facts.input != Access::mapped || facts.output != Access::mapped) {
    buffers_.finish();
    return false;
  }
  std::vector<float*> numbers, companions;
  for (int peer = 0; peer < ranks(); ++peer) {
    const auto index = static_cast<std::size_t>(peer);
    const bool isOwn = peer == rank();
    numbers.push_back(isOwn ? update.numbers : reinterpret_cast<float*>(callBuffers_.remoteReceive[index]));
    // What is mapped of others is mapped to be written.
    auto* const theirs = const_cast<std::byte*>(callBuffers_.remoteSend[index]);
    companions.push_back(isOwn ? update.companions : reinterpret_cast<float*>(theirs));
  }
  const auto [begin, end] = ownPart(update.count, ranks(), rank());
  if (begin < end) update.update(begin, end - begin, numbers.data(), hasCompanions ? companions.data() : nullptr);
  // All parts are done when all have come here.
  exchange_.begin(signature, 0);
  exchange_.post();
  exchange_.awaitAll();
  buffers_.finish();
  waiter_.checkAfterReading();
  return true;
}

}  // namespace tacc
