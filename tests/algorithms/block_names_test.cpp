// Plans over blocks of unequal lengths: those that name their blocks deliver what the collective asks for, whatever the
// lengths are.
#include "algorithms/block_names.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <tuple>
#include <vector>

#include "algorithms/verifier.hpp"
#include "interpreter.hpp"

namespace tacc::test {
namespace {

using Block = std::vector<int>;

/// Runs a plan of a stack whose blocks have the lengths that their names have. Throws where the operands of a step have
/// not one length.
class UnequalInterpreter {
 public:
  UnequalInterpreter(const Plan& plan, std::vector<std::size_t> lengths) : plan_(plan), lengths_(std::move(lengths)) {}

  void run() {
    for (int round = 0; round < plan_.rounds; ++round)
      for (int rank = 0; rank < plan_.request.ranks; ++rank)
        for (const Step& step : plan_.ranks[static_cast<std::size_t>(rank)].steps)
          if (step.round == round) runStep(rank, step);
  }
  /// Element i of the block that goes from one rank to another.
  static int valueOf(int from, int name, std::size_t i) { return from * 1000 + name * 31 + static_cast<int>(i); }
  const Block& output(int rank, int index) { return memory_.at({rank, Operand::Kind::output, index}); }

 private:
  using Place = std::tuple<int, Operand::Kind, int>;

  /// What an input block holds before anything ran.
  Block inputOf(int rank, int index) const {
    const bool isOwn =
        plan_.request.collective == Collective::allGather || plan_.request.collective == Collective::gather;
    const int name = plan_.request.collective == Collective::allToAll ? rank * plan_.request.ranks + index
                     : isOwn                                          ? rank
                                                                      : index;
    Block block(lengths_[static_cast<std::size_t>(name)]);
    for (std::size_t i = 0; i < block.size(); ++i) block[i] = valueOf(rank, name, i);
    return block;
  }

  void runStep(int rank, const Step& step) {
    for (int b = 0; b < step.blockCount; ++b) {
      Block sum;
      for (std::size_t s = 0; s < step.sources.size(); ++s) {
        const Operand& from = step.sources[s];
        Block block;
        if (from.kind == Operand::Kind::peer) {
          auto& queue = messages_[{from.index, rank}];
          block = queue.front();
          queue.erase(queue.begin());
        } else if (from.kind == Operand::Kind::input) {
          block = inputOf(rank, from.index + b);
        } else {
          block = memory_.at({rank, from.kind, from.index + b});
        }
        if (s == 0) sum.assign(block.size(), 0);
        if (block.size() != sum.size()) throw std::runtime_error("sources differ in length");
        for (std::size_t i = 0; i < block.size(); ++i) sum[i] += block[i];
      }
      for (const Operand& to : step.destinations) {
        if (to.kind == Operand::Kind::peer)
          messages_[{rank, to.index}].push_back(sum);
        else
          memory_[{rank, to.kind, to.index + b}] = sum;
      }
    }
  }

  const Plan& plan_;
  std::vector<std::size_t> lengths_;  // by name
  std::map<Place, Block> memory_;
  std::map<std::pair<int, int>, std::vector<Block>> messages_;
};

void expectDelivered(const Plan& plan, std::mt19937& random) {
  const PlanRequest& request = plan.request;
  const int p = request.ranks;
  const bool toAll = request.collective == Collective::allToAll;
  std::vector<std::size_t> lengths(static_cast<std::size_t>(toAll ? p * p : p));
  for (std::size_t& length : lengths) length = random() % 3 == 0 ? 0 : random() % 20;
  UnequalInterpreter interpreter(plan, lengths);
  ASSERT_NO_THROW(interpreter.run()) << describe(plan);
  for (int rank = 0; rank < p; ++rank)
    for (int block = 0; block < outputBlocksOf(plan, rank); ++block) {
      const bool bySource = request.collective == Collective::allGather || request.collective == Collective::gather;
      const int name = toAll ? block * p + rank : bySource ? block : rank;
      Block wanted(lengths[static_cast<std::size_t>(name)]);
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        const int source = request.collective == Collective::scatter ? request.root : block;
        if (!isReduction(request.collective)) wanted[i] = UnequalInterpreter::valueOf(source, name, i);
        for (int from = 0; isReduction(request.collective) && from < p; ++from)
          wanted[i] += UnequalInterpreter::valueOf(from, name, i);
      }
      ASSERT_EQ(interpreter.output(rank, block), wanted) << describe(plan) << ", block " << block << " of " << rank;
    }
}

TEST(BlockNames, everyPlanThatNamesItsBlocksDeliversUnequalOnes) {
  std::mt19937 random(5);
  std::map<std::string, int> named;
  for (const Algorithm& algorithm : algorithms())
    for (int p = 1; p <= 17; ++p)
      for (const PlanRequest& request : requestsServed(algorithm, p)) {
        if (partitionOf(request.collective) != Partition::stack) continue;
        const Plan plan = makePlan(algorithm, request);
        verify(plan);
        if (!verifyNames(plan)) continue;
        ++named[std::string(algorithm.name) + " " + std::string(nameOf(request.collective))];
        expectDelivered(plan, random);
        if (HasFatalFailure()) return;
      }
  for (const char* collective : {"allgather", "reducescatter", "alltoall", "gather", "scatter"})
    EXPECT_GE(named[std::string("oneshot ") + collective], 17) << collective;
  EXPECT_EQ(named["ring allgather"], 17);
  EXPECT_EQ(named["ring reducescatter"], 17);
}

/// Of plans that go straight, nobody but the two ranks of a block has to know its length.
TEST(BlockNames, whatGoesStraightIsHandledByItsRanksAlone) {
  std::map<Collective, int> straight;
  for (const Algorithm& algorithm : algorithms())
    for (int p = 2; p <= 12; ++p)
      for (const PlanRequest& request : requestsServed(algorithm, p)) {
        if (!isOneOf(request.collective, {Collective::gather, Collective::scatter, Collective::allToAll}) ||
            !goesStraight(algorithm.exchanges(request)))
          continue;
        ++straight[request.collective];
        const Plan plan = makePlan(algorithm, request);
        EXPECT_TRUE(verifyNames(plan)) << describe(plan);
        for (int rank = 0; rank < p; ++rank)
          for (const Step& step : plan.ranks[static_cast<std::size_t>(rank)].steps) {
            const int name = nameOfBlock(request, rank, step);
            if (request.collective == Collective::allToAll) {
              EXPECT_TRUE(name / p == rank || name % p == rank) << describe(plan);
            } else {
              EXPECT_TRUE(rank == request.root || name == rank) << describe(plan);
            }
          }
      }
  EXPECT_EQ(straight.size(), 3u) << "there is one for each";
}

/// So which plans serve unequal blocks has to be asked of the whole plan: ranks would choose differently.
TEST(BlockNames, leavesOfATreeNameTheirBlocksWhereOthersDoNot) {
  int unlike = 0;
  for (int p = 2; p <= 24; ++p) {
    const PlanRequest request{Collective::reduceScatter, p, 0};
    const Plan plan = makePlan(*findAlgorithm("binomial"), request);
    EXPECT_FALSE(verifyNames(plan));
    int naming = 0;
    for (int rank = 0; rank < p; ++rank)
      naming += std::ranges::all_of(plan.ranks[static_cast<std::size_t>(rank)].steps,
                                    [&](const Step& step) { return nameOfBlock(request, rank, step) >= 0; });
    EXPECT_LT(naming, p);
    unlike += naming > 0;
  }
  EXPECT_GT(unlike, 0);
}

TEST(BlockNames, aStepThatDoesNotSayItIsNotTaken) {
  const PlanRequest request{Collective::allGather, 4, 0};
  const auto nameOfStep = [&](std::vector<Operand> from, std::vector<Operand> to, int blocks = 1) {
    return nameOfBlock(request, 2, Step{0, 0, blocks, std::move(from), std::move(to)});
  };
  EXPECT_EQ(nameOfStep({input(0)}, {peer(1)}), 2);
  EXPECT_EQ(nameOfStep({peer(1)}, {output(3)}), 3);
  EXPECT_EQ(nameOfStep({input(0)}, {output(2), peer(1)}), 2);
  EXPECT_EQ(nameOfStep({input(0)}, {output(1)}), -1) << "one place, and another";
  EXPECT_EQ(nameOfStep({peer(1)}, {peer(3)}), -1);
  EXPECT_EQ(nameOfStep({peer(1)}, {scratch(0), output(1)}), -1);
}

TEST(BlockNames, bothEndsOfAMessageHaveOne) {
  Plan plan = makePlan(*findAlgorithm("oneshot"), {Collective::allGather, 3, 0});
  ASSERT_TRUE(verifyNames(plan));
  for (Step& step : plan.ranks[1].steps)
    if (step.sources[0] == peer(2)) step.destinations[0] = output(0);
  EXPECT_FALSE(verifyNames(plan));
}

}  // namespace
}  // namespace tacc::test
