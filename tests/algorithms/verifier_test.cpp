// The verifier rejects what is wrong, and says where: each rule by a small plan of its own.
#include "algorithms/verifier.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "algorithms/registry.hpp"
#include "algorithms/text.hpp"
#include "core/error.hpp"
#include "interpreter.hpp"

namespace tacc {
namespace {

/// The verifier's message, "" if it accepts.
std::string rejection(const Plan& plan, bool inPlace = false) {
  try {
    verify(plan, inPlace);
  } catch (const Error& error) {
    EXPECT_EQ(error.result(), taccInvalidArgument);
    return error.what();
  }
  return "";
}

void expectRejection(const Plan& plan, const std::string& part, bool inPlace = false) {
  const std::string message = rejection(plan, inPlace);
  EXPECT_NE(message.find(part), std::string::npos) << "got: \"" << message << "\", expected in it: \"" << part << "\"";
}

Plan planOf(std::string_view name, Collective collective, int p, int root = 0) {
  return makePlan(*findAlgorithm(name), {collective, p, root});
}

/// allreduce on 2 ranks, one block: each sends its input and adds in rank order.
Plan smallPlan() { return planOf("oneshot", Collective::allReduce, 2); }

TEST(Form, HeadIsChecked) {
  EXPECT_EQ(rejection(smallPlan()), "");
  const auto with = [](const std::function<void(Plan&)>& change) {
    Plan plan = smallPlan();
    change(plan);
    return plan;
  };
  expectRejection(with([](Plan& p) { p.algorithm = "two words"; }), "one word");
  expectRejection(with([](Plan& p) { p.algorithm = ""; }), "one word");
  expectRejection(with([](Plan& p) { p.request.collective = Collective::barrier; }), "a barrier has no plan");
  expectRejection(with([](Plan& p) { p.request.ranks = 3; }), "is for 3 ranks but has the steps of 2");
  expectRejection(with([](Plan& p) { p.request.root = 2; }), "root 2 is outside 0 to 1");
  expectRejection(with([](Plan& p) { p.blocks = 0; }), "has 0 blocks");
  expectRejection(with([](Plan& p) { p.scratchBlocks = -1; }), "-1 scratch blocks");
  expectRejection(with([](Plan& p) { p.scratchBlocks = 2000000000; }), "too many blocks");
  expectRejection(with([](Plan& p) {
                    p.rounds = 2000000001;
                    p.ranks[0].steps[1].round = 2000000000;
                  }),
                  "has 2000000001 rounds");
  expectRejection(with([](Plan& p) { p.rounds = 3; }), "says 3 rounds but its last step is in round 1");
  expectRejection(with([](Plan& p) { p.rounds = 1; }), "rank 0, round 1, step 1: the plan has rounds 0 to 0");
  expectRejection(with([](Plan& p) { p.request.collective = Collective::allGather, p.blocks = 2; }), "stacks");
}

TEST(Form, StepsAreChecked) {
  const auto with = [](const std::function<void(Step&)>& change) {
    Plan plan = smallPlan();
    change(plan.ranks[1].steps[1]);  // from 0 + input -> output
    return plan;
  };
  const std::string place = "plan oneshot allreduce, rank 1, round 1, step 1: ";
  expectRejection(with([](Step& s) { s.blockCount = 0; }), place + "covers 0 blocks");
  expectRejection(with([](Step& s) { s.blockCount = 2147483647; }), place + "covers block 0 and 2147483646 after it");
  expectRejection(with([](Step& s) { s.block = 1; }), place + "covers block 1");
  expectRejection(with([](Step& s) { s.block = -1; }), place + "covers block -1");
  expectRejection(with([](Step& s) { s.sources.clear(); }), place + "has no source");
  expectRejection(with([](Step& s) { s.destinations.clear(); }), place + "has no destination");
  expectRejection(with([](Step& s) { s.destinations[0] = input(0); }), place + "writes to input 0");
  expectRejection(with([](Step& s) { s.destinations[0] = output(1); }), place + "output block 1");
  expectRejection(with([](Step& s) { s.destinations[0] = scratch(0); }), place + "scratch block 0");
  expectRejection(with([](Step& s) { s.sources[0] = peer(2); }), place + "peer 2 is outside 0 to 1");
  expectRejection(with([](Step& s) { s.sources[0] = peer(1); }), place + "the rank is its own peer");
  expectRejection(with([](Step& s) { s.sources[0] = input(0); }), place + "lists input 0 twice as a source");
  expectRejection(with([](Step& s) { s.destinations.push_back(output(0)); }), place + "lists output 0 twice");
  expectRejection(with([](Step& s) { s.sources[0].kind = static_cast<Operand::Kind>(9); }),
                  place + "an operand is of no known kind");
  Plan unordered = smallPlan();
  std::swap(unordered.ranks[0].steps[0], unordered.ranks[0].steps[1]);
  expectRejection(unordered, "rank 0, round 0, step 1: stands after a step of round 1");
  Plan adds = planOf("oneshot", Collective::allGather, 2);
  adds.ranks[0].steps[1].sources.push_back(input(0));
  expectRejection(adds, "has 2 sources, but allgather reduces nothing");
  Plan stacked = planOf("oneshot", Collective::allGather, 2);
  stacked.ranks[0].steps[1].block = 1;
  expectRejection(stacked, "in a stack it must be 0");
  Plan split = planOf("twoshot", Collective::allReduce, 2);
  split.ranks[0].steps[0].sources[0] = input(0);
  expectRejection(split, "is about block 1 but has input block 0");
}

TEST(Messages, MustMatch) {
  Plan unsent = smallPlan();
  unsent.ranks[0].steps.erase(unsent.ranks[0].steps.begin());
  expectRejection(unsent, "rank 1, round 1, step 1: receives from rank 0, which does not send this message");
  Plan untaken = smallPlan();
  untaken.ranks[1].steps.pop_back();
  expectRejection(untaken, "rank 0, round 0, step 0: sends to rank 1, which does not receive this message");
  Plan early = smallPlan();
  early.ranks[1].steps[1].round = 0;
  expectRejection(early, "rank 1, round 0, step 1: takes a message that rank 0 sends in round 0");
  Plan crossed = planOf("twoshot", Collective::reduce, 3);
  std::swap(crossed.ranks[0].steps[0], crossed.ranks[0].steps[1]);
  EXPECT_EQ(rejection(crossed), "") << "messages to different ranks may change places";
  Plan blocks = planOf("halving_doubling_far", Collective::allReduce, 4);
  blocks.ranks[0].steps[0].blockCount = 1;
  expectRejection(blocks, "expects 2 blocks from block 2 of rank 0, which sends 1 from block 2");
}

TEST(Dataflow, ConflictsInARoundAreFound) {
  Plan plan = planOf("oneshot", Collective::allGather, 3);
  for (Step& step : plan.ranks[0].steps) {
    if (step.round == 1) step.destinations[0] = output(1);
  }
  expectRejection(plan, "writes output block 1, which step 1 of the same round writes too");
  Plan reads = planOf("recursive_doubling", Collective::allReduce, 2);
  reads.ranks[0].steps.push_back({1, 0, 1, {output(0)}, {scratch(0)}});
  reads.scratchBlocks = 1;
  expectRejection(reads, "reads output block 0, which step 1 of the same round writes");
}

TEST(Dataflow, ShiftedOverlapWithinAStepIsAConflict) {
  // Copies scratch [0, 2) to [1, 3): what is read second depends on what was written first.
  Plan plan = planOf("oneshot", Collective::gather, 1);
  plan.scratchBlocks = 3;
  plan.rounds = 4;
  std::vector<Step>& steps = plan.ranks[0].steps;
  steps.push_back({1, 0, 1, {input(0)}, {scratch(0)}});
  steps.push_back({2, 0, 1, {input(0)}, {scratch(1)}});
  steps.push_back({3, 0, 2, {scratch(0)}, {scratch(1)}});
  expectRejection(plan, "round 3, step 3: reads scratch block 1, which step 3 of the same round writes");
}

TEST(Dataflow, ContentsAreProven) {
  Plan unwritten = smallPlan();
  unwritten.ranks[0].steps[0].sources[0] = output(0);
  expectRejection(unwritten, "reads output block 0 before anything was written there");
  Plan missing = smallPlan();
  missing.ranks[0].steps[1].sources = {peer(1)};
  expectRejection(missing, "output block 0 of rank 0 lacks the contribution of rank 0");
  Plan twice = planOf("recursive_doubling", Collective::allReduce, 4);
  twice.ranks[2].steps[2].sources[1] = input(0);
  twice.ranks[2].steps[2].sources[0] = output(0);
  EXPECT_NE(rejection(twice), "");
  Plan again = planOf("ring", Collective::allReduce, 3);
  again.ranks[0].steps.push_back({5, 0, 1, {input(0), output(0)}, {output(0)}});
  again.rounds = 6;
  expectRejection(again, "takes the contribution of rank 0 to block 0 twice");
  Plan mixed = planOf("oneshot", Collective::reduceScatter, 2);
  mixed.ranks[0].steps[1].sources[0] = input(1);
  expectRejection(mixed, "adds contributions to block 1 and to block 0");
  Plan wrongRank = planOf("oneshot", Collective::gather, 3);
  std::swap(wrongRank.ranks[0].steps[1].destinations, wrongRank.ranks[0].steps[2].destinations);
  expectRejection(wrongRank, "does not hold what rank 1 contributes");
  Plan wrongBlock = planOf("oneshot", Collective::scatter, 3);
  wrongBlock.ranks[0].steps[1].sources = {input(2)};
  expectRejection(wrongBlock, "output block 0 of rank 1 holds input block 2, not 1");
}

TEST(Dataflow, RanksMustAddInTheSameOrder) {
  Plan plan = smallPlan();
  std::vector<Operand>& sources = plan.ranks[1].steps[1].sources;
  std::swap(sources[0], sources[1]);
  expectRejection(plan, "rank 1 combines the contributions to block 0 in another order than rank 0");
}

TEST(Completions, AreWhatStepsSay) {
  for (const bool says : {false, true}) {
    Plan plan = planOf("ring", Collective::allReduce, 3);
    for (RankPlan& rank : plan.ranks)
      for (Step& step : rank.steps) step.completes = says && step.sources.size() > 1;
    expectRejection(plan, says ? "rank 0, round 1, step 1: is said to combine the last contributions, and does not"
                               : "rank 0, round 2, step 2: combines the last contributions, and does not say so");
    verifyAndComplete(plan);
    EXPECT_EQ(plan, planOf("ring", Collective::allReduce, 3));
  }
}

TEST(Completions, AreOfAllBlocksOfAStep) {
  const std::string text =
      "tacc plan 1\ncollective allreduce\nalgorithm by_hand\nranks 3\nroot 0\nblocks 2\nscratch 0\nrounds 4\n"
      "rank 0\n  round 3\n    blocks 0 to 1: input 0 + peer 1 -> output 0\n"
      "rank 1\n  round 0\n    block 1: input 1 -> output 1\n  round 1\n    block 0: input 0 + peer 2 -> output 0\n"
      "  round 2\n    blocks 0 to 1: output 0 -> peer 0\n"
      "rank 2\n  round 0\n    block 0: input 0 -> peer 1\n";
  try {
    fromText(text);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("round 3, step 0: combines the contributions of all ranks in some of its"),
              std::string::npos)
        << error.what();
  }
}

TEST(InPlace, AliasingIsPartOfTheProof) {
  // Right out of place only: the output is written in round 0 and the input read in round 1.
  Plan plan = planOf("oneshot", Collective::allToAll, 2);
  for (RankPlan& rank : plan.ranks) {
    for (Step& step : rank.steps) step.round = step.sources[0].kind == Operand::Kind::peer ? 1 : 0;
  }
  ASSERT_EQ(rejection(plan), "");
  ASSERT_EQ(rejection(plan, true), "");
  Step late = plan.ranks[0].steps[0];
  plan.ranks[0].steps.erase(plan.ranks[0].steps.begin());
  plan.ranks[0].steps.push_back({2, 0, 1, {input(1)}, {scratch(0)}});
  plan.ranks[0].steps.push_back({3, 0, 1, late.sources, late.destinations});
  plan.scratchBlocks = 1;
  plan.rounds = 4;
  EXPECT_EQ(rejection(plan), "");
  EXPECT_EQ(rejection(plan, true), "") << "a copy of a changed block that nobody needs does no harm";
  plan.ranks[0].steps.back().sources = {input(0)};
  plan.ranks[0].steps.insert(plan.ranks[0].steps.begin(), {0, 0, 1, {input(1)}, {output(0)}});
  EXPECT_EQ(rejection(plan), "");
  expectRejection(plan, "output block 0 of rank 0 holds input block 1, not 0", true);
}

}  // namespace
}  // namespace tacc
