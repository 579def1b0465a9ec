#include "engine/shm/node_run.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <utility>

#include "core/error.hpp"
#include "core/types.hpp"
#include "engine/call_kernel.hpp"
#include "engine/call_shape.hpp"
#include "engine/signature.hpp"
#include "topology/model/cores.hpp"

namespace tacc {
namespace {

constexpr std::size_t leastMeasuredPost =
    1024;  // below, streaming never pays for its fence, nor two looks at the clock

int divisorOf(const Call& call, int ranks) noexcept { return call.op == taccAvg ? ranks : 1; }

}  // namespace

NodeRun::NodeRun(const NodeSegment& segment, int rank, int ranks, Waiter& waiter, CallExchange& exchange,
                 BufferExchange& buffers, AreaPages& pages, std::vector<int> processes, CmaMode cma)
    : segment_(segment),
      rank_(rank),
      ranks_(ranks),
      exchange_(exchange),
      buffers_(buffers),
      pages_(pages),
      cma_(cma),
      eager_(rank, ranks, exchange),
      pipes_(segment, rank, waiter, processes),
      executor_(segment, rank, waiter, std::move(processes), pipes_),
      programs_(rank),
      postPolicies_(ranks),
      plannedPolicies_(waiter.policy().oversubscribed) {}

EagerCall NodeRun::eagerCallOf(const Call& call, std::size_t posted) const {
  const bool reduces = isReduction(call.collective);
  return {.collective = call.collective,
          .send = static_cast<const std::byte*>(call.send),
          .receive = static_cast<std::byte*>(call.receive),
          .bytes = call.count * sizeOf(call.type),
          .posted = ranks_ == 1 ? 0 : posted,
          .count = call.count,
          .root = call.root,
          .reduce = reduces ? kernelOf(call, firstSumCode) : ReduceKernel(),
          .divisor = reduces ? divisorOf(call, ranks_) : 1,
          .stream = false};
}

void NodeRun::runEager(EagerCall& call, std::uint64_t signature) {
  if (call.posted > linePayload) pages_.need(AreaPart::eager);
  exchange_.begin(signature, call.posted, isRooted(call.collective));
  if (call.posted >= leastMeasuredPost) {
    if (isRooted(call.collective) || isPrefix(call.collective)) return runOneWay(call);
    call.stream = eagerPolicies_.choose(call.collective, CopyPolicyKind::eager, call.posted).nonTemporalSlots;
    if (eagerPolicies_.wantsTime()) {
      const Stopwatch watch;
      eager_.run(call);
      eagerPolicies_.record(watch.seconds());
      return;
    }
  }
  eager_.run(call);
}

void NodeRun::runOneWay(EagerCall& call) {
  const PostPolicyTuner::Choice choice = postPolicies_.choose(call.collective, call.posted);
  call.stream = choice.stream;
  if (choice.isFirst) {
    judgePosts();
    postWatch_ = Stopwatch();
  }
  eager_.run(call);
  if (!choice.isLast) return;
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(postWatch_.seconds()));
  const std::uint64_t told = std::uint64_t{exchange_.sequence()} << 32 | bits;
  segment_.postTime(rank_).rows[timedRows_.next() % postRows].store(told, std::memory_order_relaxed);
  timedRows_.add(choice, exchange_.sequence());
}

void NodeRun::judgePosts() noexcept {
  timedRows_.judge([&](std::uint32_t row, std::uint32_t lastCall) -> std::optional<float> {
    float slowest = 0;
    for (int rank = 0; rank < ranks_; ++rank) {
      const std::uint64_t told = segment_.postTime(rank).rows[row % postRows].load(std::memory_order_relaxed);
      if (told >> 32 != lastCall) return std::nullopt;
      slowest = std::max(slowest, std::bit_cast<float>(static_cast<std::uint32_t>(told)));
    }
    return std::isfinite(slowest) ? slowest : 0;
  });
}

void NodeRun::open(std::uint64_t signature, const UserBuffers& mine, const std::function<UserBuffers(int)>& buffersOf,
                   bool checksPipes, const BufferExchange::Ahead& ahead) {
  exchange_.begin(signature, linePayload);
  const BufferExchange::Agreed agreed =
      buffers_.run(mine, buffersOf, lastSeconds_, places_, ahead, {&pipes_, checksPipes});
  facts_ = agreed.facts;
  isAhead_ = agreed.isAhead;
  hasPipes_ = agreed.hasPipes;
  if (!isAhead_) plannedPolicies_.record(agreed.slowest);
}

bool NodeRun::isRepeated(const Call& call, const UserBuffers& mine) const noexcept {
  if (last_.program == nullptr || last_.collective != call.collective || last_.root != call.root ||
      last_.count != call.count || last_.size != sizeOf(call.type) || last_.policy.throughKernel)
    return false;
  if (last_.facts.input != Access::staged || last_.facts.output != Access::staged ||
      last_.facts.inPlace != mine.inPlace)
    return false;
  return plannedPolicies_.settled(call.collective, last_.kind, last_.count * last_.size, mine.inPlace) == last_.policy;
}

void NodeRun::usePolicy(Collective collective, CopyPolicyKind kind, std::size_t bytes) {
  policy_ = plannedPolicies_.choose(collective, kind, bytes, facts_.inPlace);
  if (!policy_.throughKernel)
    for (Access* access : {&facts_.input, &facts_.output})
      if (*access == Access::cma) *access = Access::staged;
  facts_.pipes = policy_.throughPipes;
  // A quarter of the cache lies in it beside the slot and the result. What is streamed to both is quicker in one pass,
  // though the others then wait for both.
  facts_.readsTwice = bytes <= ownCacheBytes() / 4 && !policy_.nonTemporalResults;
}

CopyPolicyKind NodeRun::kindOf(Access input, Access output) const noexcept {
  if (input == Access::mapped && output == Access::mapped) return CopyPolicyKind::mapped;
  if (input != Access::cma && output != Access::cma) return CopyPolicyKind::staged;
  if (hasPipes_) return kindWithPipes();
  return cma_ == CmaMode::automatic ? CopyPolicyKind::either : CopyPolicyKind::cma;
}

CopyPolicyKind NodeRun::kindWithPipes() const noexcept {
  if (cma_ == CmaMode::pipes) return CopyPolicyKind::piped;
  return cma_ == CmaMode::on ? CopyPolicyKind::cmaPiped : CopyPolicyKind::eitherPiped;
}

bool NodeRun::checksPipes(Collective collective, std::size_t bytes, bool inPlace) noexcept {
  constexpr unsigned callsPerCheck = 16;  // each is half a microsecond a descriptor
  if (largeCalls_++ % callsPerCheck != 0) return false;
  const auto policy = plannedPolicies_.settled(collective, kindWithPipes(), bytes, inPlace);
  return !policy || policy->throughPipes;
}

LoweringFacts NodeRun::meet(const Call& call, std::uint64_t signature) {
  const auto buffersOf = [&call, this](int peer) { return usedBuffers(call, peer, ranks_); };
  const std::size_t bytes = call.count * sizeOf(call.type);
  const UserBuffers mine = buffersOf(rank_);
  const bool isFromRoot = shapeOf(call.collective).send.usedBy == UsedBy::root;
  open(signature, mine, buffersOf, checksPipes(call.collective, bytes, mine.inPlace),
       {.rank = isFromRoot ? call.root : -1, .isWanted = isFromRoot && rank_ == call.root && isRepeated(call, mine)});
  // Who reads memory of others through the kernel the ranks know from the last call.
  const CopyPolicyKind kind = isAhead_ ? last_.kind : kindOf(facts_.input, facts_.output);
  usePolicy(call.collective, kind, bytes);
  if (isAhead_ && !(facts_ == last_.facts && policy_ == last_.policy))
    fail(taccInternalError, "rank {} goes ahead in a call that is not as the one before", call.root);
  last_ = {call.collective,
           call.root,
           call.count,
           sizeOf(call.type),
           kind,
           facts_,
           policy_,
           isAhead_ ? last_.program : nullptr,
           last_.following};
  return facts_;
}

LoweringFacts NodeRun::meet(const Call& call, std::uint64_t signature, const UserBuffers& mine,
                            const std::vector<UnequalBlocks>& blocks, std::size_t longest) {
  const auto buffersOf = [&](int peer) { return unequalBuffers(call, blocks[static_cast<std::size_t>(peer)], peer); };
  const std::size_t bytes = longest * sizeOf(call.type);
  open(signature, mine, buffersOf, checksPipes(call.collective, bytes, mine.inPlace));
  last_ = {};
  facts_.output = Access::staged;  // where a block begins in a peer's output only that rank knows
  usePolicy(call.collective, kindOf(facts_.input, facts_.input), bytes);
  return facts_;
}

CachedProgram& NodeRun::programOf(const NodePlan& plan, const PlanDemands& demands) {
  CachedProgram& cached = programs_.get(*plan.algorithm, *plan.request, facts_, plan.layout, plan.order);
  ProgramCache::demand(cached, *plan.algorithm, *plan.request, demands);
  return cached;
}

bool NodeRun::run(const Call& call, const NodePlan& plan, const PlanDemands& demands) {
  CachedProgram& cached = programOf(plan, demands);
  if (isReduction(call.collective) && isHalfWidth(call.type) && call.user == nullptr && !cached.program.roundsOnce)
    return false;
  const std::size_t size = sizeOf(call.type);
  execute(cached, plan,
          {.collective = call.collective,
           .count = call.count,
           .elementBytes = size,
           .reduce = kernelOf(call, firstSumCode),
           .divisor = divisorOf(call, ranks_),
           .nonTemporal = {.slots = policy_.nonTemporalSlots,
                           // Results that fit the core's own cache stay there: the caller reads them next.
                           .results = policy_.nonTemporalResults && call.count * size >= ownCacheBytes(),
                           // A rank has its own block already, where it gave it.
                           .own = policy_.nonTemporalResults}});
  return true;
}

void NodeRun::run(const Call& call, const NodePlan& plan, const PlanDemands& demands,
                  const std::vector<UnequalBlocks>& blocks, std::size_t longest) {
  execute(programOf(plan, demands), plan,
          {.collective = call.collective,
           .count = longest,
           .elementBytes = sizeOf(call.type),
           .reduce = kernelOf(call, firstSumCode),
           .divisor = divisorOf(call, ranks_),
           .nonTemporal = {.slots = policy_.nonTemporalSlots},
           .blocks = &blocks});
}

void NodeRun::execute(CachedProgram& cached, const NodePlan& plan, const ElementWork& work) {
  const Schedule& schedule = cached.scheduleFor(work.count, work.elementBytes, [&] { return plan.limits; });
  pages_.need(AreaPart::arena, schedule.depth * static_cast<std::size_t>(cached.program.slots) * schedule.blockStride);
  const Stopwatch watch;
  if (isAhead_ && last_.program != &cached)
    fail(taccInternalError, "a call that is as the one before has another program, by {}", cached.program.algorithm);
  last_.following = isAhead_ ? last_.following + 1 : 0;
  last_.program = &cached;
  executor_.run(cached.program, schedule, places_, work, last_.following);
  buffers_.finish();
  lastSeconds_ = static_cast<float>(watch.seconds());
}

}  // namespace tacc
