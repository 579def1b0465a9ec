// Sums of 16-bit numbers over several hosts: partial sums travel as floats, so that they are rounded once, and results
// as 16 bits. Of a long vector that is 6 bytes a number where floats both ways are 8.
//
// The plan of the allreduce runs in its two parts (algorithms/result_split.hpp), sums and then results. What is done
// here is to widen a chunk's numbers before it goes out, and to round what this rank has completed of it.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

#include "algorithms/use_proof.hpp"
#include "comm/cluster/cluster_communicator.hpp"
#include "compute/reduce/reduce.hpp"
#include "core/types.hpp"
#include "engine/partition.hpp"

namespace tacc {
namespace {

/// Elements that go together: as floats they are 16 MiB, which a network takes long enough for that a second start does
/// not count.
constexpr std::size_t mostTogether = std::size_t{4} << 20;
/// Of a float and of what travels in the end, of each number on average.
constexpr std::size_t wideBytes = sizeof(float), meanBytes = 3;

/// That of the least price, also among those of nearly the same: of a plan's two parts each waits for the other to end,
/// which trees, whose sums and results otherwise pass each other, pay twice.
const NetworkCandidate& leastPriced(NetworkSelector& selector, std::size_t bytes) {
  const std::vector<NetworkCandidate>& all = selector.explain(Collective::allReduce, 0, bytes);
  const auto price = [](const NetworkCandidate& one) {
    return one.isPossible ? one.seconds : std::numeric_limits<double>::infinity();
  };
  return *std::ranges::min_element(all, {}, price);
}

}  // namespace

/// The parts follow one another, so there is a second start: that pays for long vectors only.
bool ClusterCommunicator::gathersHalfWidth(std::size_t numbers) {
  const std::size_t count = std::min(numbers, mostTogether);
  if (!steered(Collective::allReduce, count * wideBytes).empty()) return false;
  const auto seconds = [&](std::size_t bytes) { return leastPriced(selector_, bytes).seconds; };
  return seconds(count * meanBytes) + 2 * seconds(1) < seconds(count * wideBytes);
}

/// How an allreduce of 16-bit numbers of these bytes runs, which the candidates' table does not say.
std::string ClusterCommunicator::explainHalfWidth(std::size_t bytes) {
  const std::size_t numbers = bytes / 2;
  if (config().halfPartialSums || config().isReproducible || numbers == 0) return "";
  const std::string what = fmt::format("{} numbers of 16 bits: ", numbers);
  if (!gathersHalfWidth(numbers)) return fmt::format("{}as {} bytes of float32\n", what, numbers * wideBytes);
  const std::size_t count = std::min(numbers, mostTogether);
  const Algorithm& algorithm = *leastPriced(selector_, count * meanBytes).algorithm;
  const auto prices = selector_.explainParts(algorithm, count * wideBytes, count * 2);
  const double times = static_cast<double>(numbers) / static_cast<double>(count);
  const auto priced = [&](double seconds) { return prices ? fmt::format(", {:.1f} us", seconds * times * 1e6) : ""; };
  return fmt::format("{}{} in two parts: reduce-scatter of {} bytes of float32{}; allgather of {} bytes of 16 bits{}\n",
                     what, algorithm.name, numbers * wideBytes, priced(prices ? prices->sums : 0), numbers * 2,
                     priced(prices ? prices->results : 0));
}

void ClusterCommunicator::allReduceHalfWidth(const Call& call) {
  Call part = call;
  part.isInternal = true;
  for (std::size_t begin = 0; begin < call.count; begin += mostTogether) {
    const std::size_t offset = begin * sizeOf(call.type);
    part.count = std::min(mostTogether, call.count - begin);
    part.send = static_cast<const std::byte*>(call.send) + offset;
    part.receive = static_cast<std::byte*>(call.receive) + offset;
    allReducePartHalfWidth(part);
  }
}

const ClusterCommunicator::SplitProgram& ClusterCommunicator::splitProgramFor(const Algorithm& algorithm, int member) {
  const auto found = splitPrograms_.find(&algorithm);
  if (found != splitPrograms_.end()) return found->second;
  const PlanRequest request = selector_.request(Collective::allReduce, 0);
  proveForUse(algorithm, request);
  ResultSplit split = splitAtResults(makeLocalPlan(algorithm, request, member));
  return splitPrograms_
      .emplace(&algorithm, SplitProgram{lowerForNetwork(split.sums, true), lowerForNetwork(split.results, false),
                                        std::move(split.complete)})
      .first->second;
}

void ClusterCommunicator::allReducePartHalfWidth(const Call& call) {
  const std::size_t size = sizeOf(call.type);
  const auto member = static_cast<int>(std::ranges::find(everybody_, rank()) - everybody_.begin());
  const auto* input = static_cast<const std::byte*>(call.send);
  auto* output = static_cast<std::byte*>(call.receive);
  const Algorithm& algorithm = *leastPriced(selector_, call.count * meanBytes).algorithm;
  const SplitProgram& parts = splitProgramFor(algorithm, member);
  const int blocks = parts.sums.blocks;
  const Call sum{Collective::allReduce, nullptr, nullptr, call.count, taccFloat32, call.op};
  const Call result{Collective::allReduce, nullptr, nullptr, call.count, call.type, taccSum};
  const std::size_t chunk = chunkOf(algorithm, sum, 0, member, true);
  const std::size_t chunks = (call.count + chunk - 1) / chunk;
  auto* const wide = reinterpret_cast<float*>(window_.atLeast(call.count * wideBytes));
  const auto length = [&](std::size_t k) { return std::min(chunk, call.count - k * chunk); };

  std::vector<NetworkChunk> toSum, toSpread;
  for (std::size_t k = 0; k < chunks; ++k) {
    auto* const numbers = reinterpret_cast<std::byte*>(wide + k * chunk);
    std::byte* const place = output + k * chunk * size;
    toSum.push_back({numbers, numbers, length(k)});
    toSpread.push_back({place, place, length(k)});
  }
  PlanRun run{Collective::allReduce, algorithm, everybody_, 0, true, call.count, std::move(toSum)};
  run.program = &parts.sums;
  start(sum, std::move(run), 0);
  runChunks(
      chunks, [&](std::size_t k) { widenToFloat(call.type, wide + k * chunk, input + k * chunk * size, length(k)); },
      [&](std::size_t k) {
        for (const ResultSplit::Blocks& done : parts.complete) {
          const std::size_t begin = blockBegin(length(k), blocks, done.first, wideBytes);
          const std::size_t end = blockBegin(length(k), blocks, done.first + done.count, wideBytes);
          narrowFromFloat(call.type, output + (k * chunk + begin) * size, wide + k * chunk + begin, end - begin);
        }
      });

  PlanRun spread{Collective::allReduce, algorithm, everybody_, 0, false, call.count, std::move(toSpread)};
  spread.program = &parts.results;
  spread.cutBytes = wideBytes;
  start(result, std::move(spread), call.count);
  finish();
}

}  // namespace tacc
