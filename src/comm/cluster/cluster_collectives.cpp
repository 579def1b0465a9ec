// How a communicator over several hosts runs a call: which plan, in which chunks, over which memory.
#include <algorithm>
#include <cstring>
#include <utility>

#include "algorithms/registry.hpp"
#include "algorithms/use_proof.hpp"
#include "comm/call_demands.hpp"
#include "comm/cluster/cluster_communicator.hpp"
#include "core/error.hpp"
#include "core/types.hpp"
#include "engine/call_kernel.hpp"
#include "engine/call_shape.hpp"

namespace tacc {
namespace {

/// Bytes of all blocks, up to which copying them costs less than sending them one by one.
constexpr std::size_t copiedLimit = 256 * 1024;

const std::byte* sendOf(const Call& call) { return static_cast<const std::byte*>(call.send); }

/// `chunk` elements each, of a vector, or of every block of a stack.
std::vector<NetworkChunk> cut(const std::byte* input, std::byte* output, std::size_t count, std::size_t chunk,
                              std::size_t elementBytes) {
  std::vector<NetworkChunk> chunks;
  for (std::size_t begin = 0; begin < count; begin += chunk) {
    const std::size_t offset = begin * elementBytes;
    chunks.push_back({input == nullptr ? nullptr : input + offset, output == nullptr ? nullptr : output + offset,
                      std::min(chunk, count - begin)});
  }
  return chunks;
}

std::size_t indexOf(const std::vector<int>& members, int rank) {
  return static_cast<std::size_t>(std::ranges::find(members, rank) - members.begin());
}

}  // namespace

const NetworkProgram& ClusterCommunicator::programFor(const Algorithm& algorithm, Collective collective, int root,
                                                      int member, bool inPlace) {
  const std::tuple key{&algorithm, collective, root, member, inPlace};
  const auto found = programs_.find(key);
  if (found != programs_.end()) return found->second;
  const PlanRequest request = selector_.request(collective, root);
  proveForUse(algorithm, request);
  const LocalPlan plan = makeLocalPlan(algorithm, request, member);
  return programs_.emplace(key, lowerForNetwork(plan, inPlace)).first->second;
}

std::byte* ClusterCommunicator::workspace(std::size_t bytes) {
  if (workspace_.size() < bytes) workspace_.resize(bytes);
  return workspace_.data();
}

const Algorithm& ClusterCommunicator::algorithmFor(const Call& call, int root, std::size_t bytes,
                                                   const PlanDemands& demands) {
  // What a tuning file or measured times say is of the plans that meet none.
  if (demands != PlanDemands{})
    return selector_.choose(call.collective, root, bytes, call.isInternal ? std::string_view() : forced(), demands);
  const std::string_view route = steered(call);
  if (route.empty() && isDynamic() && !call.isInternal) return tuner_.choose(selector_, call.collective, root, bytes);
  return selector_.choose(call.collective, root, bytes, route);
}

std::size_t ClusterCommunicator::chunkOf(const Algorithm& algorithm, const Call& call, int root, int member,
                                         bool inPlace) {
  const std::size_t size = sizeOf(call.type);
  const int blocks = programFor(algorithm, call.collective, root, member, inPlace).blocks;
  const std::size_t message = selector_.messageBytes(call.collective, call.count * size);
  return std::max<std::size_t>(1, message / size) * static_cast<std::size_t>(blocks);
}

void ClusterCommunicator::start(const Call& call, PlanRun run, std::size_t released) {
  const std::size_t elementBytes = sizeOf(call.type);
  const auto member = static_cast<int>(indexOf(run.members, rank()));
  NetworkWork work;
  work.program =
      run.program != nullptr ? run.program : &programFor(run.algorithm, run.collective, run.root, member, run.inPlace);
  work.members = run.members;
  work.chunks = std::move(run.chunks);
  work.blockBytes = (run.distance != 0 ? run.distance : run.count) * elementBytes;
  work.blocks = run.blocks;
  // Blocks of the caller's buffers are in the order of the ranks.
  if (run.blocks == nullptr && &run.members == &everybody_ && !std::ranges::is_sorted(everybody_)) {
    work.places = everybody_;
    work.inputHasPlaces = run.collective != Collective::allGather && run.collective != Collective::gather;
    work.outputHasPlaces = run.collective != Collective::reduceScatter && run.collective != Collective::scatter;
    work.copiesBlocks = run.copiesBlocks;
  }
  work.elementBytes = elementBytes;
  work.cutBytes = run.cutBytes;
  work.reduce = kernelOf(call, taccNumOps);
  work.divisor = call.op == taccAvg ? ranks() : 1;
  work.rank = rank();
  work.signature = signature_;
  work.call = call_;
  work.window = chunksUnderWay;
  endpoint_.guard(&run_, [&] { run_.start(std::move(work), released); });
  active_ = &run_;
  lastAlgorithm_ = run.algorithm.name;
}

void ClusterCommunicator::finish() {
  endpoint_.run(run_, [this] { return run_.isFinished(); });
  active_ = nullptr;
}

void ClusterCommunicator::runChunks(std::size_t chunks, const std::function<void(std::size_t)>& before,
                                    const std::function<void(std::size_t)>& after) {
  for (std::size_t k = 0; k < chunks + chunksUnderWay; ++k) {
    if (k < chunks) {
      if (before) before(k);
      run_.release(k + 1);
      endpoint_.guard(&run_, [&] { run_.advance(); });
    }
    if (k < chunksUnderWay || k - chunksUnderWay >= chunks) continue;
    const std::size_t done = k - chunksUnderWay;
    endpoint_.run(run_, [&] { return run_.completed() > done; });
    if (after) after(done);
  }
  finish();
}

void ClusterCommunicator::runPlan(const Call& call) {
  const std::size_t bytes = call.count * sizeOf(call.type);
  const PlanDemands demands = demandsOf(call, config().isReproducible);
  const bool isStack = call.collective == Collective::allGather || call.collective == Collective::reduceScatter;
  const bool copiesBlocks = isStack && !demands.rankOrder && bytes > 0 && bytes * everybody_.size() <= copiedLimit &&
                            !std::ranges::is_sorted(everybody_);
  // A scan, and what is combined in the order of the ranks, goes over them as they are numbered.
  const std::vector<int>& members = demands.rankOrder || isPrefix(call.collective) ? inOrder_ : everybody_;
  const int root = isRooted(call.collective) ? static_cast<int>(indexOf(members, call.root)) : 0;
  const Algorithm& algorithm = algorithmFor(call, root, bytes, demands);
  UserBuffers mine = usedBuffers(call, rank(), ranks());
  if (copiesBlocks) {
    mine.send = sendOf(call);
    mine.inPlace = false;
  }
  const auto member = static_cast<int>(indexOf(members, rank()));
  const std::size_t chunk = copiesBlocks ? call.count : chunkOf(algorithm, call, root, member, mine.inPlace);
  PlanRun run{call.collective,
              algorithm,
              members,
              root,
              mine.inPlace,
              call.count,
              cut(mine.send, mine.receive, call.count, chunk, sizeOf(call.type))};
  run.copiesBlocks = copiesBlocks;
  start(call, std::move(run), call.count);
  finish();
}

void ClusterCommunicator::barrier() {
  std::uint8_t none = 0;
  auto* data = reinterpret_cast<std::byte*>(&none);
  const Call call{.collective = Collective::allReduce,
                  .send = &none,
                  .receive = &none,
                  .count = 1,
                  .type = taccUint8,
                  .op = taccMax,
                  .isInternal = true};
  const Algorithm& algorithm = algorithmFor(call, 0, 1);
  start(call, {Collective::allReduce, algorithm, everybody_, 0, true, 1, {{data, data, 1}}}, 1);
  finish();
}

}  // namespace tacc
