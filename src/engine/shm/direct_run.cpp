#include "engine/shm/direct_run.hpp"

#include "core/index.hpp"
#include "engine/partition.hpp"

namespace tacc {

std::pair<std::size_t, std::size_t> ownPart(std::size_t count, int ranks, int rank) noexcept {
  return {blockBegin(count, ranks, rank, sizeof(float)), blockBegin(count, ranks, rank + 1, sizeof(float))};
}

bool DirectRun::run(const DirectUpdate& update, std::uint64_t signature) {
  exchange_.begin(signature, linePayload);
  const std::size_t bytes = update.count * sizeof(float);
  const bool hasCompanions = update.companions != nullptr;
  const UserBuffers mine{reinterpret_cast<const std::byte*>(update.companions), hasCompanions ? bytes : 0,
                         reinterpret_cast<std::byte*>(update.numbers), bytes, false};
  const auto sameOn = [&](int) { return mine; };
  const LoweringFacts facts = buffers_.run(mine, sameOn, 0, places_, {}, {}).facts;
  if (facts.input != Access::mapped || facts.output != Access::mapped) {
    buffers_.finish();
    return false;
  }
  numbers_.clear();
  companions_.clear();
  for (int peer = 0; peer < ranks_; ++peer) {
    const bool isOwn = peer == rank_;
    numbers_.push_back(isOwn ? update.numbers : reinterpret_cast<float*>(places_.remoteReceive[at(peer)]));
    // What is mapped of others is mapped to be written.
    auto* const theirs = const_cast<std::byte*>(places_.remoteSend[at(peer)]);
    companions_.push_back(isOwn ? update.companions : reinterpret_cast<float*>(theirs));
  }
  const auto [begin, end] = ownPart(update.count, ranks_, rank_);
  if (begin < end) update.update(begin, end - begin, numbers_.data(), hasCompanions ? companions_.data() : nullptr);
  // All parts are done when all have come here.
  exchange_.begin(signature, 0);
  exchange_.post();
  exchange_.awaitAll();
  buffers_.finish();
  waiter_.checkAfterReading();
  return true;
}

}  // namespace tacc
