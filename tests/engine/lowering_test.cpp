// Programs of every algorithm, collective, root and set of facts, run on simulated memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "algorithms/registry.hpp"
#include "engine/schedule.hpp"
#include "engine/shm/own_copies.hpp"
#include "simulator.hpp"

namespace tacc {
namespace {

using test::Element;
using test::PerRank;

constexpr std::size_t arenaBytes = 1 << 20;

std::vector<LoweringFacts> everyFacts() {
  std::vector<LoweringFacts> all;
  for (const Access input : {Access::staged, Access::cma, Access::mapped})
    for (const Access output : {Access::staged, Access::cma, Access::mapped})
      for (const bool inPlace : {false, true}) all.push_back({input, output, inPlace, (all.size() & 1) != 0});
  all.push_back({.readsTwice = true});
  for (const auto& [input, output, inPlace] : {std::tuple{Access::cma, Access::cma, false},
                                               {Access::cma, Access::cma, true},
                                               {Access::cma, Access::staged, true},
                                               {Access::mapped, Access::cma, false}})
    all.push_back({.input = input, .output = output, .inPlace = inPlace, .pipes = true});
  return all;
}

std::vector<Program> lowerAll(const Plan& plan, const LoweringFacts& facts) {
  std::vector<Program> programs;
  for (int rank = 0; rank < plan.request.ranks; ++rank) programs.push_back(lower(plan, rank, facts));
  return programs;
}

Schedule scheduleFor(const Program& program, std::size_t count, std::size_t chunkBytes) {
  return makeSchedule(program, count, sizeof(Element), {arenaBytes, chunkBytes});
}

/// Enough elements, not a round number, that all copies of the slots are used twice and one more.
std::size_t countForManyChunks(const Program& program) {
  const Schedule probe = scheduleFor(program, 1 << 16, 1);
  return probe.chunks == 1 ? 131 : probe.chunkElements * (2 * probe.depth + 1) - 3;
}

/// Who is asked for a part of a copy waits for its reader, reads nothing itself, and knows it.
void checkShared(const std::vector<Program>& programs) {
  for (std::size_t rank = 0; rank < programs.size(); ++rank)
    for (const Round& round : programs[rank].rounds)
      for (const Operation& operation : round.operations) {
        if (!operation.isShared) continue;
        const Program& owner = programs[static_cast<std::size_t>(operation.sources[0].rank)];
        ASSERT_TRUE(owner.helpsReaders);
        ASSERT_TRUE(std::ranges::any_of(owner.lastReaders,
                                        [&](const Dependency& d) { return d.rank == static_cast<int>(rank); }));
        for (const Round& other : owner.rounds)
          for (const Operation& one : other.operations) ASSERT_FALSE(one.readsThroughKernel);
      }
}

/// Nobody touches memory out of its access, and reads through the kernel are marked.
void checkReach(const Program& program, int rank, const LoweringFacts& facts) {
  for (const Round& round : program.rounds) {
    for (const Operation& operation : round.operations) {
      bool throughKernel = false;
      for (const Place& place : operation.sources) {
        const bool input = place.kind == Place::Kind::remoteInput, output = place.kind == Place::Kind::remoteOutput;
        if (place.kind == Place::Kind::pipe) {
          ASSERT_TRUE(facts.pipes);
          ASSERT_NE(place.rank, rank);
          throughKernel = true;
        } else if (input || output) {
          const Access access = input ? facts.input : facts.output;
          ASSERT_NE(access, Access::staged);
          throughKernel = throughKernel || access == Access::cma;
        } else if (place.kind != Place::Kind::slot) {
          ASSERT_EQ(place.rank, rank);
        }
      }
      ASSERT_EQ(operation.readsThroughKernel, throughKernel);
      if (operation.isShared) {
        ASSERT_TRUE(throughKernel);
        ASSERT_EQ(operation.sources.size(), 1u);
        ASSERT_EQ(operation.destinations.size(), 1u);
        ASSERT_EQ(operation.destinations[0].kind, Place::Kind::output);
      }
      for (const Place& place : operation.destinations) {
        ASSERT_NE(place.kind, Place::Kind::input);
        ASSERT_NE(place.kind, Place::Kind::remoteInput);
        if (place.kind == Place::Kind::pipe) {
          ASSERT_TRUE(facts.pipes);
          ASSERT_NE(place.rank, rank);
          ASSERT_EQ(operation.sources.size(), 1U);  // which is memory of this rank
        } else if (place.kind == Place::Kind::remoteOutput) {
          ASSERT_EQ(facts.output, Access::mapped);
        } else {
          ASSERT_EQ(place.rank, rank);
        }
      }
    }
  }
}

class Lowering : public testing::TestWithParam<std::tuple<const Algorithm*, int>> {
 protected:
  const Algorithm& algorithm() const { return *std::get<0>(GetParam()); }
  int ranks() const { return std::get<1>(GetParam()); }

  void runCall(const Plan& plan, const LoweringFacts& facts, const std::vector<Program>& programs, std::size_t count) {
    const Schedule schedule = scheduleFor(programs[0], count, 1);
    ASSERT_LE(std::size_t{schedule.depth} * static_cast<std::size_t>(programs[0].slots) * schedule.blockStride,
              arenaBytes);
    test::SimulatedCall call{plan, programs, schedule, count, {}};
    // In place on some rank is in place in the facts: each rank decides for itself.
    for (int rank = 0; rank < ranks(); ++rank) call.inPlace.push_back(facts.inPlace && random_() % 4 != 0);
    const auto inputs = test::makeInputs<Element>(plan, count, [&] { return random_() << 8 | 1; });
    auto expected = test::expectedOutputs(plan.request, count, inputs);
    // What holds the contributions of all ranks is complete: of prefixes that of the last rank, which has a scan's sum.
    const Collective collective = plan.request.collective;
    for (int rank = 0; rank < ranks(); ++rank) {
      const bool hasAll = !isPrefix(collective) || (collective == Collective::scan && rank == ranks() - 1);
      for (Element& e : expected[static_cast<std::size_t>(rank)])
        e += isReduction(collective) && hasAll && ranks() > 1 ? test::completed : 0;
    }
    const auto seed = static_cast<unsigned>(random_());
    const auto place = [&] {
      return test::describe(plan) + " count=" + std::to_string(count) + " chunks=" + std::to_string(schedule.chunks) +
             " input reach=" + std::to_string(static_cast<int>(facts.input)) +
             " output reach=" + std::to_string(static_cast<int>(facts.output)) +
             " in place=" + std::to_string(static_cast<int>(facts.inPlace)) + " seed=" + std::to_string(seed);
    };
    try {
      const PerRank<Element> outputs = test::Simulator(call, seed).run(inputs);
      for (std::size_t rank = 0; rank < outputs.size(); ++rank) {
        if (expected[rank].empty()) continue;  // the collective delivers nothing here
        ASSERT_EQ(outputs[rank], expected[rank]) << place() << " rank=" << rank;
      }
    } catch (const std::exception& error) {
      FAIL() << place() << ": " << error.what();
    }
  }

  std::mt19937_64 random_{static_cast<std::uint64_t>(ranks())};
};

TEST_P(Lowering, runsAsTheCollectiveIsDefined) {
  const bool quick = std::getenv("TACC_TEST_QUICK") != nullptr;
  for (const PlanRequest& request : test::requestsServed(algorithm(), ranks())) {
    const Plan plan = makePlan(algorithm(), request);
    for (const LoweringFacts& facts : everyFacts()) {
      if (quick && (facts.input == Access::cma || random_() % 4 != 0)) continue;
      if (facts.pipes && random_() % 2 != 0) continue;  // as reads through the kernel, but for the order
      const std::vector<Program> programs = lowerAll(plan, facts);
      for (int rank = 0; rank < ranks(); ++rank) {
        ASSERT_NO_FATAL_FAILURE(checkReach(programs[rank], rank, facts)) << test::describe(plan) << " rank=" << rank;
        ASSERT_EQ(programs[rank].slots, programs[0].slots);
        ASSERT_EQ(programs[rank].slotReach, programs[0].slotReach);
        ASSERT_EQ(programs[rank].rounds.size(), programs[0].rounds.size());
      }
      ASSERT_NO_FATAL_FAILURE(checkShared(programs)) << test::describe(plan);
      for (const std::size_t count : {countForManyChunks(programs[0]), static_cast<std::size_t>(ranks()) + 1})
        ASSERT_NO_FATAL_FAILURE(runCall(plan, facts, programs, count));
    }
  }
}

/// Both ends copy where one of them has nothing else to do.
TEST(SharedCopies, areThoseOfRanksThatOnlyGive) {
  for (const auto& [collective, isShared] : {std::pair{Collective::broadcast, true},
                                             {Collective::gather, true},
                                             {Collective::scatter, true},
                                             {Collective::allGather, false},
                                             {Collective::allToAll, false}}) {
    const Plan plan = makePlan(*findAlgorithm("oneshot"), {collective, 3, 1});
    for (const Access input : {Access::staged, Access::cma, Access::mapped}) {
      bool isFound = false;
      for (const Program& program : lowerAll(plan, {.input = input}))
        for (const Round& round : program.rounds)
          for (const Operation& operation : round.operations) isFound = isFound || operation.isShared;
      EXPECT_EQ(isFound, isShared && input == Access::cma) << nameOf(collective);
    }
  }
}

/// Others wait for the end of a round, and not for what a rank copies for itself.
TEST(OwnCopies, followWhatOthersWaitFor) {
  const auto rootOf = [](Collective c, bool inPlace, bool readsTwice = false) {
    return lower(makePlan(*findAlgorithm("oneshot"), {c, 3, 1}), 1, {.inPlace = inPlace, .readsTwice = readsTwice});
  };
  for (const Collective c : {Collective::scatter, Collective::allToAll}) {
    for (const bool inPlace : {false, true}) {
      const Program program = rootOf(c, inPlace);
      ASSERT_EQ(program.rounds.size(), 2U) << nameOf(c);
      EXPECT_EQ(program.rounds.front().operations.size(), 2U) << nameOf(c);
      for (const Operation& operation : program.rounds.front().operations)
        EXPECT_EQ(operation.destinations.front().kind, Place::Kind::slot) << nameOf(c) << " in place " << inPlace;
      const std::vector<Operation>& last = program.rounds.back().operations;
      ASSERT_FALSE(last.empty()) << nameOf(c);
      EXPECT_EQ(last.front().sources.front().kind, Place::Kind::input) << nameOf(c) << " in place " << inPlace;
    }
  }
  // The root of a gather stages nothing: its copy is done while it would wait.
  EXPECT_EQ(rootOf(Collective::gather, false).rounds.front().operations.size(), 1U);
  // What the same step stages is read once, unless it is short.
  EXPECT_EQ(rootOf(Collective::allGather, false).rounds.front().operations.front().destinations.size(), 2U);
  for (const Collective c : {Collective::allGather, Collective::broadcast}) {
    const Program program = rootOf(c, false, true);
    EXPECT_EQ(program.rounds.front().operations.front().destinations.size(), 1U);
    EXPECT_EQ(program.rounds.back().operations.front().destinations.front().kind, Place::Kind::output);
  }
}

/// Who has a part in the root's copies begins while the root copies what is its own.
TEST(OwnCopies, followTheBeginningOfSharedOnes) {
  const Plan plan = makePlan(*findAlgorithm("oneshot"), {Collective::gather, 3, 1});
  const Program root = lower(plan, 1, {.input = Access::cma});
  ASSERT_EQ(root.rounds.size(), 2U);
  EXPECT_TRUE(root.rounds.front().operations.empty());
  EXPECT_EQ(std::ranges::count(root.rounds.back().operations, true, &Operation::isShared), 2);
  EXPECT_EQ(std::ranges::count(root.rounds.back().operations, false, &Operation::isShared), 1);
  // Where the others do nothing meanwhile, it is copied while the root would wait for them.
  EXPECT_EQ(lower(plan, 1, {.input = Access::mapped}).rounds.front().operations.size(), 1U);
}

/// What a plan reads through the kernel comes through pipes, or none of it does; in plans of few rounds it always can.
TEST(Pipes, serveAllOfAPlanOrNothing) {
  const auto countOf = [](const std::vector<Program>& programs, Place::Kind kind) {
    std::ptrdiff_t count = 0;
    for (const Program& program : programs)
      for (const Round& round : program.rounds)
        for (const Operation& operation : round.operations)
          count += std::ranges::count(operation.sources, kind, &Place::kind);
    return count;
  };
  for (const Algorithm& algorithm : algorithms())
    for (const PlanRequest& request : test::requestsServed(algorithm, 4)) {
      const Plan plan = makePlan(algorithm, request);
      LoweringFacts facts{.input = Access::cma, .output = Access::cma};
      const std::vector<Program> reading = lowerAll(plan, facts);
      facts.pipes = true;
      const std::vector<Program> giving = lowerAll(plan, facts);
      const auto readsOf = [&](const std::vector<Program>& programs) {
        return countOf(programs, Place::Kind::remoteInput) + countOf(programs, Place::Kind::remoteOutput);
      };
      const auto piped = countOf(giving, Place::Kind::pipe);
      EXPECT_EQ(piped + readsOf(giving), readsOf(reading)) << test::describe(plan);
      EXPECT_TRUE(piped == 0 || readsOf(giving) == 0) << test::describe(plan);
      if (plan.rounds <= 2) {
        EXPECT_EQ(readsOf(giving), 0) << test::describe(plan);
      }
    }
}

bool usesPipes(const Plan& plan) {
  const LoweringFacts facts{.input = Access::cma, .output = Access::cma, .pipes = true};
  const auto isPiped = [](const Operation& o) { return o.sources.front().kind == Place::Kind::pipe; };
  return std::ranges::any_of(lower(plan, 1, facts).rounds,
                             [&](const Round& round) { return std::ranges::any_of(round.operations, isPiped); });
}

/// Messages of two rounds that are read in the other order are not what a pipe can hold.
TEST(Pipes, areNotUsedWhereMessagesOvertake) {
  const auto readsBy = [](int firstRead, int secondRead) {
    Plan plan{.request = {Collective::allGather, 2, 0}, .algorithm = "by hand", .rounds = 6, .ranks = {{}, {}}};
    plan.ranks[0].steps = {{0, 0, 1, {input(0)}, {output(0)}},
                           {1, 0, 1, {input(0)}, {peer(1)}},
                           {2, 0, 1, {output(0)}, {peer(1)}},
                           {4, 0, 1, {peer(1)}, {output(1)}}};
    plan.ranks[1].steps = {{3, 0, 1, {input(0)}, {peer(0)}},
                           {firstRead, 0, 1, {peer(0)}, {output(0)}},
                           {secondRead, 0, 1, {peer(0)}, {output(1)}}};
    std::ranges::sort(plan.ranks[1].steps, {}, &Step::round);
    return usesPipes(plan);
  };
  EXPECT_TRUE(readsBy(3, 4));
  EXPECT_FALSE(readsBy(3, 5));  // where chunks are in flight, the second of one is read after the first of a later one
}

/// Nor are two messages of one step; two steps of one round may have one each.
TEST(Pipes, areNotUsedWhereAStepHasTwoMessagesOfAPair) {
  const auto sentBy = [](const std::vector<Step>& sends) {
    Plan plan{.request = {Collective::allGather, 2, 0}, .algorithm = "by hand", .rounds = 5, .ranks = {{}, {}}};
    plan.ranks[0].steps = {{0, 0, 1, {input(0)}, {output(0)}}};
    plan.ranks[0].steps.insert(plan.ranks[0].steps.end(), sends.begin(), sends.end());
    plan.ranks[0].steps.push_back({4, 0, 1, {peer(1)}, {output(1)}});
    plan.ranks[1].steps = {
        {3, 0, 1, {input(0)}, {peer(0)}}, {3, 0, 1, {peer(0)}, {output(0)}}, {3, 0, 1, {peer(0)}, {output(1)}}};
    return usesPipes(plan);
  };
  EXPECT_TRUE(sentBy({{1, 0, 1, {input(0)}, {peer(1)}}, {1, 0, 1, {input(0)}, {peer(1)}}}));
  EXPECT_FALSE(sentBy({{1, 0, 1, {input(0)}, {peer(1), peer(1)}}}));
}

/// Input is there when its owner has entered the call: what that copies for itself is not waited for.
TEST(Waits, areForContentsOfWhatIsReadByReference) {
  for (const Collective c : {Collective::scatter, Collective::allToAll, Collective::allGather})
    for (const Access input : {Access::cma, Access::mapped})
      for (const Program& program : lowerAll(makePlan(*findAlgorithm("oneshot"), {c, 3, 1}), {.input = input}))
        for (const Round& round : program.rounds) EXPECT_TRUE(round.before.empty()) << nameOf(c);
  // What a rank stages is not there before it has done so.
  const Program staged = lower(makePlan(*findAlgorithm("oneshot"), {Collective::scatter, 3, 1}), 0, {});
  EXPECT_EQ(staged.rounds.back().before.size(), 1U);
}

/// Rank 1 sends by a round in which it also reads what rank 0 writes anew once it has that message.
TEST(Waits, areForTheSendersRoundWhereThatTellsWhatWasRead) {
  Plan plan{.request = {Collective::allGather, 2, 0}, .algorithm = "by hand", .rounds = 4, .ranks = {{}, {}}};
  plan.ranks[0].steps = {
      {0, 0, 1, {input(0)}, {output(0)}}, {1, 0, 1, {output(0)}, {peer(1)}}, {3, 0, 1, {peer(1)}, {output(0)}}};
  plan.ranks[1].steps = {{2, 0, 1, {peer(0)}, {output(0)}}, {2, 0, 1, {input(0)}, {peer(0)}}};
  const Program program = lower(plan, 0, {.input = Access::cma, .output = Access::cma});
  const std::vector<Dependency>& waits = program.rounds[3].before;
  ASSERT_EQ(waits.size(), 1U);
  EXPECT_EQ(waits[0].rank, 1);
  EXPECT_EQ(waits[0].round, 2);
  // With its own memory staged nobody reads that later.
  EXPECT_TRUE(lower(plan, 0, {.input = Access::cma}).rounds[3].before.empty());
}

/// A later step reads what was copied, or writes where it came from.
TEST(OwnCopies, stayWhereALaterStepNeedsThem) {
  const Plan plan = makePlan(*findAlgorithm("oneshot"), {Collective::scatter, 2, 0});
  const auto copiesAtOnce = [&](const Operation& later, bool inPlace) {
    Program program = lower(plan, 0, {});
    program.rounds[0].operations.push_back(std::move(program.rounds[1].operations.front()));
    program.rounds[1].operations = {later};
    deferOwnCopies(program, plan, 0, {.inPlace = inPlace});
    return program.rounds[1].operations.size() == 1;
  };
  const Place slot{Place::Kind::slot, 1, 0}, input{Place::Kind::input, 0, 0}, output{Place::Kind::output, 0, 0};
  EXPECT_FALSE(copiesAtOnce({0, 1, false, false, {slot}, {{Place::Kind::output, 0, 1}}}, false));
  EXPECT_TRUE(copiesAtOnce({0, 1, false, false, {slot}, {output}}, false));
  EXPECT_TRUE(copiesAtOnce({0, 1, false, false, {output}, {slot}}, false));
  EXPECT_TRUE(copiesAtOnce({0, 1, false, false, {input}, {slot}}, false));
}

/// How many of 200 orders show an error when `damage` has been done to rank 1's program of a ring allreduce.
int countErrors(void (*damage)(Program&)) {
  const Plan plan = makePlan(*findAlgorithm("ring"), {Collective::allReduce, 4, 0});
  std::vector<Program> programs = lowerAll(plan, {});
  damage(programs[1]);
  const std::size_t count = countForManyChunks(programs[0]);
  const test::SimulatedCall call{plan, programs, scheduleFor(programs[0], count, 1), count, std::vector<bool>(4)};
  const auto inputs = test::makeInputs<Element>(plan, count, [] { return Element{1}; });
  int errors = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    try {
      test::Simulator(call, seed).run(inputs);
    } catch (const std::exception&) {
      ++errors;
    }
  }
  return errors;
}

/// A slot that is written too early shows only where a reader happens to be several chunks late, so in few orders.
TEST(Simulator, NoticesWhatIsWrong) {
  EXPECT_EQ(countErrors([](Program&) {}), 0);
  EXPECT_GT(countErrors([](Program& program) {
              for (Round& round : program.rounds) round.before.clear();
            }),
            10);
  EXPECT_GT(countErrors([](Program& program) {
              for (Round& round : program.rounds) round.slotReaders.clear();
            }),
            0);
  // A wait for a rank's own last round, which is yet to come.
  EXPECT_EQ(countErrors([](Program& program) {
              program.rounds[1].before.push_back({1, static_cast<int>(program.rounds.size()) - 1});
            }),
            200);
}

INSTANTIATE_TEST_SUITE_P(Algorithms, Lowering,
                         testing::Combine(testing::ValuesIn([] {
                                            std::vector<const Algorithm*> all;
                                            for (const Algorithm& algorithm : algorithms()) all.push_back(&algorithm);
                                            return all;
                                          }()),
                                          testing::Range(1, 10)),
                         [](const auto& suite) {
                           return std::string(std::get<0>(suite.param)->name) + "_" +
                                  std::to_string(std::get<1>(suite.param));
                         });

}  // namespace
}  // namespace tacc
