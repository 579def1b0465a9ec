// Every damage to every algorithm's plans is found: a step dropped, a peer, a block, a round changed, a contribution
// repeated.
#include <gtest/gtest.h>

#include <functional>

#include "algorithms/registry.hpp"
#include "algorithms/verifier.hpp"
#include "core/error.hpp"
#include "interpreter.hpp"

namespace tacc {
namespace {

/// The verifier's message, "" if it accepts.
std::string rejection(const Plan& plan) {
  try {
    verify(plan);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

struct Target {
  int rank;
  std::size_t step;
};

std::vector<Target> allSteps(const Plan& plan) {
  std::vector<Target> targets;
  for (int rank = 0; rank < plan.request.ranks; ++rank) {
    for (std::size_t i = 0; i < plan.ranks[rank].steps.size(); ++i) targets.push_back({rank, i});
  }
  return targets;
}

void sortSteps(Plan& plan) {
  plan.rounds = 0;
  for (RankPlan& rank : plan.ranks) {
    std::stable_sort(rank.steps.begin(), rank.steps.end(),
                     [](const Step& a, const Step& b) { return a.round < b.round; });
    if (!rank.steps.empty()) plan.rounds = std::max(plan.rounds, rank.steps.back().round + 1);
  }
}

bool isLocalCopy(const Step& step) {
  const auto isPeer = [](const Operand& o) { return o.kind == Operand::Kind::peer; };
  return step.sources.size() == 1 && !isPeer(step.sources[0]) && std::ranges::none_of(step.destinations, isPeer);
}

/// Changes one place of a plan; every operand of a step can be reached by `which`.
Operand* operandOf(Step& step, std::size_t which) {
  if (which < step.sources.size()) return &step.sources[which];
  which -= step.sources.size();
  return which < step.destinations.size() ? &step.destinations[which] : nullptr;
}

class Damage : public testing::TestWithParam<const Algorithm*> {
 protected:
  /// Every plan of 2 to 6 ranks with two roots.
  void forEveryPlan(const std::function<void(const Plan&)>& visit) {
    for (int p = 2; p <= 6; ++p) {
      for (const PlanRequest& request : test::requestsServed(*GetParam(), p)) {
        if (request.root > 1) continue;
        visit(makePlan(*GetParam(), request));
      }
    }
  }
  void mustReject(const Plan& plan, const Target& target, const char* what) {
    ++damaged_;
    EXPECT_NE(rejection(plan), "") << test::describe(plan) << ": " << what << " in rank " << target.rank << " step "
                                   << target.step << " was accepted";
  }
  /// Accepted means right, on numbers, in every order of steps that is tried.
  void mustRejectOrBeRight(const Plan& plan) {
    ++damaged_;
    if (rejection(plan) != "") return;
    std::mt19937_64 random(5);
    const auto inputs = test::makeInputs<std::uint64_t>(plan, 13, [&] { return random(); });
    const auto expected = test::expectedOutputs(plan.request, 13, inputs);
    for (unsigned seed = 0; seed < 3; ++seed) {
      ASSERT_EQ(test::Interpreter<std::uint64_t>(plan, 13, false, seed).run(inputs), expected) << test::describe(plan);
    }
  }
  void TearDown() override { EXPECT_GE(damaged_, 20); }

 private:
  int damaged_ = 0;
};

TEST_P(Damage, ADroppedStepIsRejected) {
  forEveryPlan([&](const Plan& plan) {
    for (const Target& target : allSteps(plan)) {
      Plan damaged = plan;
      std::vector<Step>& steps = damaged.ranks[target.rank].steps;
      steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(target.step));
      sortSteps(damaged);
      mustReject(damaged, target, "a dropped step");
    }
  });
}

TEST_P(Damage, AnotherPeerIsRejected) {
  forEveryPlan([&](const Plan& plan) {
    const int p = plan.request.ranks;
    for (const Target& target : allSteps(plan)) {
      Step original = plan.ranks[target.rank].steps[target.step];
      for (std::size_t which = 0; operandOf(original, which) != nullptr; ++which) {
        for (int other = 0; other < p; ++other) {
          Plan damaged = plan;
          Operand& operand = *operandOf(damaged.ranks[target.rank].steps[target.step], which);
          if (operand.kind != Operand::Kind::peer || operand.index == other) continue;
          operand.index = other;
          mustReject(damaged, target, "another peer");
        }
      }
    }
  });
}

TEST_P(Damage, AnotherBlockIsRejected) {
  forEveryPlan([&](const Plan& plan) {
    const bool split = partitionOf(plan.request.collective) == Partition::split;
    for (const Target& target : allSteps(plan)) {
      Step original = plan.ranks[target.rank].steps[target.step];
      for (const int by : {-1, 1}) {
        for (std::size_t which = 0; operandOf(original, which) != nullptr; ++which) {
          Plan damaged = plan;
          Step& step = damaged.ranks[target.rank].steps[target.step];
          Operand& operand = *operandOf(step, which);
          if (operand.kind == Operand::Kind::peer) continue;
          operand.index += by;
          mustReject(damaged, target, "another block");
        }
        if (!split) continue;
        Plan damaged = plan;
        Step& step = damaged.ranks[target.rank].steps[target.step];
        step.block += by;
        for (std::size_t which = 0; operandOf(step, which) != nullptr; ++which) {
          if (operandOf(step, which)->kind != Operand::Kind::peer) operandOf(step, which)->index += by;
        }
        mustReject(damaged, target, "a step about another block");
      }
    }
  });
}

TEST_P(Damage, AnotherNumberOfBlocksIsRejected) {
  forEveryPlan([&](const Plan& plan) {
    for (const Target& target : allSteps(plan)) {
      for (const int by : {-1, 1}) {
        Plan damaged = plan;
        Step& step = damaged.ranks[target.rank].steps[target.step];
        step.blockCount += by;
        if (isLocalCopy(step)) {
          mustRejectOrBeRight(damaged);  // what it copies too much may be overwritten later
        } else {
          mustReject(damaged, target, "another number of blocks");
        }
      }
    }
  });
}

TEST_P(Damage, ARepeatedContributionIsRejected) {
  forEveryPlan([&](const Plan& plan) {
    for (const Target& target : allSteps(plan)) {
      const Step& original = plan.ranks[target.rank].steps[target.step];
      for (const Operand& operand : original.sources) {
        Plan damaged = plan;
        damaged.ranks[target.rank].steps[target.step].sources.push_back(operand);
        mustReject(damaged, target, "a repeated source");
      }
    }
  });
}

TEST_P(Damage, AMessageTakenInTheRoundInWhichItIsSentIsRejected) {
  forEveryPlan([&](const Plan& plan) {
    for (const Target& target : allSteps(plan)) {
      const Step& original = plan.ranks[target.rank].steps[target.step];
      const bool receives = std::any_of(original.sources.begin(), original.sources.end(),
                                        [](const Operand& o) { return o.kind == Operand::Kind::peer; });
      if (!receives) continue;
      Plan damaged = plan;
      damaged.ranks[target.rank].steps[target.step].round = 0;
      sortSteps(damaged);
      mustReject(damaged, target, "a receive in round 0");
    }
  });
}

TEST_P(Damage, AnyOtherRoundIsRejectedOrRight) {
  forEveryPlan([&](const Plan& plan) {
    for (const Target& target : allSteps(plan)) {
      for (int round = 0; round <= plan.rounds; ++round) {
        Plan damaged = plan;
        damaged.ranks[target.rank].steps[target.step].round = round;
        sortSteps(damaged);
        mustRejectOrBeRight(damaged);
      }
    }
  });
}

TEST_P(Damage, RandomDamageIsRejectedOrRight) {
  std::mt19937 random(13);
  const auto pick = [&](std::size_t below) { return static_cast<std::size_t>(random() % below); };
  forEveryPlan([&](const Plan& plan) {
    const std::vector<Target> targets = allSteps(plan);
    for (int trial = 0; trial < 60; ++trial) {
      Plan damaged = plan;
      for (std::size_t changes = 1 + pick(2); changes > 0; --changes) {
        const Target& target = targets[pick(targets.size())];
        Step& step = damaged.ranks[target.rank].steps[target.step];
        std::vector<Operand>& operands = pick(2) == 0 ? step.sources : step.destinations;
        switch (pick(5)) {
          case 0:
            operands[pick(operands.size())].kind = static_cast<Operand::Kind>(pick(4));
            break;
          case 1:
            operands[pick(operands.size())].index = static_cast<int>(pick(6));
            break;
          case 2:
            std::swap(operands.front(), operands.back());
            break;
          case 3:
            std::swap(step, damaged.ranks[target.rank].steps.front());
            break;
          default:
            step.round = static_cast<int>(pick(static_cast<std::size_t>(plan.rounds) + 1));
            break;
        }
      }
      sortSteps(damaged);
      mustRejectOrBeRight(damaged);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Algorithms, Damage, testing::ValuesIn([] {
                           std::vector<const Algorithm*> all;
                           for (const Algorithm& algorithm : algorithms()) all.push_back(&algorithm);
                           return all;
                         }()),
                         [](const auto& param) { return std::string(param.param->name); });

}  // namespace
}  // namespace tacc
