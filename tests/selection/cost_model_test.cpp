// Quick prices against the simulator, and what must hold for them.
#include "selection/cost/cost_model.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "algorithms/registry.hpp"

namespace tacc {
namespace {

struct Setting {
  std::string name;
  CostMachine machine;
  std::vector<std::vector<int>> groups;
};

/// Machines of one, two and three levels, with narrow and with wide uplinks.
std::vector<Setting> settings(int p) {
  std::vector<Setting> all;
  const double beta = 1e-10;
  all.push_back({"flat", {p, {{{0}, 5e-6, beta, 0}}, 0, 5e-11, 3e-7}, {}});
  if (p % 4 == 0 && p > 4) {
    const CostLevel inside{groupsOfSize(p, 4), 1e-6, beta, 1 / beta};
    all.push_back({"narrow", {p, {inside, {{0}, 1e-5, beta, 0}}, 0, 5e-11, 3e-7}, equalGroups(p, {4})});
    const CostLevel wide{groupsOfSize(p, 4), 1e-6, beta, 4 / beta};
    all.push_back({"wide", {p, {wide, {{0}, 1e-5, beta, 0}}, 0, 5e-11, 3e-7}, equalGroups(p, {4})});
    if (p % 16 == 0 && p > 16) {
      const CostLevel racks{groupsOfSize(p, 16), 5e-6, beta, 2 / beta};
      all.push_back({"racks", {p, {inside, racks, {{0}, 2e-5, beta, 0}}, 0, 5e-11, 3e-7}, equalGroups(p, {4, 4})});
    }
  }
  const CostLevel direct{groupsOfSize(p, 4), 1e-6, beta, 4 / beta};
  if (p == 16 || p == 32) {
    // Two ranks at each place of a torus whose links carry what one rank sends; and groups joined by one link each.
    std::vector<std::uint32_t> places;
    for (int place = 0; place < p / 2; ++place) places.push_back(static_cast<std::uint32_t>(place));
    const CostLevel torus{{0}, 1e-5, beta, 0, {static_cast<std::uint32_t>(p / 8), 4}, places, 1 / beta};
    all.push_back({"torus", {p, {{groupsOfSize(p, 2), 1e-6, beta, 0}, torus}, 0, 5e-11, 3e-7}, equalGroups(p, {2})});
    const CostLevel joined{{0}, 1e-5, beta, 0, {}, {}, 1 / beta};
    all.push_back({"direct", {p, {direct, joined}, 0, 5e-11, 3e-7}, equalGroups(p, {4})});
  }
  return all;
}

/// How far prices are off, in shares of the calls.
struct Errors {
  int calls = 0, within2 = 0, within5 = 0, within15 = 0;

  void add(double off) {
    ++calls;
    within2 += off < 0.02 ? 1 : 0;
    within5 += off < 0.05 ? 1 : 0;
    within15 += off < 0.15 ? 1 : 0;
  }
  void print(const char* what) const {
    fmt::print("{} calls of {}: {} within 2 %, {} within 5 %, {} within 15 %\n", calls, what, within2, within5,
               within15);
  }
};

/// What is played of a call, one rank for all that are alike, and the patterns alone, against every message.
TEST(CostModel, AgreesWithTheSimulator) {
  Errors ofOne, ofMany, ofOneByPatterns, ofManyByPatterns;  // chunks
  for (const Algorithm& algorithm : algorithms()) {
    for (const int p : {2, 5, 8, 12, 16, 24, 32, 64}) {
      for (const Setting& setting : settings(p)) {
        const CostMap map(setting.machine);
        for (int c = 0; c < collectiveCount; ++c) {
          const PlanRequest request{static_cast<Collective>(c), p, 0, setting.groups, {}};
          if (!algorithm.serves(request)) continue;
          const Plan plan = makePlan(algorithm, request);
          for (const double bytes : {8.0, 1e4, 1e6, 3e7}) {
            for (const double chunk : {0.0, 1e6}) {
              if (chunk > 0 && (bytes <= chunk || p > 16)) continue;
              const CostCall call{bytes, chunk, 4};
              const int chunks = chunksOf(call);
              const double whole = simulate(plan, map, call);
              const double quick = predict(algorithm, request, map, call).value();
              const double patterns = secondsOf(
                  priceChunk(exchangesOf(algorithm, request), request, map, bytes / chunks), chunks, call.window);
              (chunk == 0 ? ofOne : ofMany).add(std::abs(quick / whole - 1));
              EXPECT_LT(std::abs(quick / whole - 1), chunk == 0 ? 0.02 : 0.5)
                  << algorithm.name << " " << nameOf(request.collective) << " on " << setting.name << ", " << p
                  << " ranks, " << bytes << " bytes in chunks of " << chunk << ": " << quick << ", " << whole;
              // Of a prefix, whose ranks do unequal work, patterns tell less; what few ranks run is always played.
              if (!isPrefix(request.collective))
                (chunk == 0 ? ofOneByPatterns : ofManyByPatterns).add(std::abs(patterns / whole - 1));
              else if (p < 16 || !algorithm.serves({request.collective, 4096, 0, {}, {}}))
                continue;
              EXPECT_LT(std::abs(patterns / whole - 1), 0.5)
                  << "by patterns: " << algorithm.name << " " << nameOf(request.collective) << " on " << setting.name
                  << ", " << p << " ranks, " << bytes << " bytes in chunks of " << chunk;
            }
          }
        }
      }
    }
  }
  ofOne.print("one chunk");
  ofMany.print("many chunks");
  ofOneByPatterns.print("one chunk by patterns");
  ofManyByPatterns.print("many chunks by patterns");
  EXPECT_GT(ofOne.calls, 5000);
  EXPECT_EQ(ofOne.within2, ofOne.calls);
  EXPECT_GT(ofMany.within2, 0.97 * ofMany.calls);
  EXPECT_EQ(ofMany.within15, ofMany.calls);
  EXPECT_GT(ofOneByPatterns.within2, 0.87 * ofOneByPatterns.calls);
  EXPECT_GT(ofOneByPatterns.within15, 0.97 * ofOneByPatterns.calls);
  EXPECT_GT(ofManyByPatterns.within2, 0.7 * ofManyByPatterns.calls);
  EXPECT_GT(ofManyByPatterns.within15, 0.9 * ofManyByPatterns.calls);
}

/// Of more ranks than are played each for itself: what is played is right. `played`: at least so many of the calls.
void compareOfMany(int p, double played) {
  const double beta = 1e-10;
  const std::vector<std::vector<int>> groups = equalGroups(p, {16, 4});
  const CostLevel inside{groupsOfSize(p, 16), 1e-6, beta, 4 / beta}, racks{groupsOfSize(p, 64), 5e-6, beta, 8 / beta};
  const CostMap flat({p, {{{0}, 5e-6, beta, 0}}, 0, 5e-11, 3e-7}),
      narrow({p, {inside, racks, {{0}, 2e-5, beta, 0}}, 0, 5e-11, 3e-7});
  int compared = 0, found = 0, rightByPatterns = 0;
  for (const Algorithm& algorithm : algorithms()) {
    for (const Collective collective : {Collective::allReduce, Collective::broadcast, Collective::reduceScatter}) {
      const PlanRequest request{collective, p, 0, groups, {}};
      if (!algorithm.serves(request)) continue;
      std::size_t operands = 0;
      makeLocalPlan(algorithm, request, 1).steps.forEach([&](const Step& step) {
        operands += step.sources.size() + step.destinations.size();
      });
      if (operands > 100) continue;  // playing them each for itself takes long
      const Plan plan = makePlan(algorithm, request);
      for (const CostMap* map : {&flat, &narrow}) {
        for (const double bytes : {8.0, 1e6}) {
          const CostCall call{bytes, 0, 4};
          const double whole = simulate(plan, *map, call);
          double budget = 1e6;
          ++compared;
          if (const auto quick = play(algorithm, request, *map, call, budget)) {
            ++found;
            EXPECT_NEAR(*quick / whole, 1, 0.02) << algorithm.name << " " << nameOf(collective) << ", " << bytes
                                                 << " bytes on " << (map == &flat ? "a flat machine" : "three levels");
          } else if (std::abs(*predict(algorithm, request, *map, call) / whole - 1) < 0.02) {
            ++rightByPatterns;
          }
        }
      }
    }
  }
  fmt::print("{} ranks, {} calls: {} played, of the others {} within 2 % by patterns\n", p, compared, found,
             rightByPatterns);
  EXPECT_GE(found, played * compared);
  EXPECT_GE(compared, 60);
}

TEST(CostModel, OneRankStandsForAllThatAreAlike) { compareOfMany(512, 0.95); }
TEST(CostModel, OneRankStandsForAllThatAreAlikeOfThousands) { compareOfMany(2048, 0.6); }

TEST(CostModel, MoreBytesNeverTakeLess) {
  for (const Setting& setting : settings(64)) {
    const CostMap map(setting.machine);
    for (const Algorithm& algorithm : algorithms()) {
      double before = 0;
      for (double bytes = 1; bytes < 1e10; bytes *= 3) {
        const auto now = predict(algorithm, {Collective::allReduce, 64, 0, setting.groups, {}}, map, {bytes, 0, 4});
        if (!now) continue;
        EXPECT_GE(*now, before) << algorithm.name << " on " << setting.name << " " << bytes;
        before = *now;
      }
    }
  }
}

/// TaihuLight: supernodes of 256 whose uplinks carry a quarter of what their ranks could send.
CostMachine supernodes(int p) {
  const double beta = 1 / 6e9;
  return {p, {{groupsOfSize(p, 256), 1e-5, beta, 64 / beta}, {{0}, 2e-5, beta, 0}}, 0, 1e-10, 1e-6};
}

TEST(CostModel, TheBoundIsNeverBeatenAndRingsComeNear) {
  const int p = 4096;
  const CostMap map(supernodes(p));
  const double bytes = 1e10, bound = 2 * bytes * (p - 1) / p / 6e9;
  for (const Algorithm& algorithm : algorithms()) {
    const auto seconds =
        predict(algorithm, {Collective::allReduce, p, 0, equalGroups(p, {256}), {}}, map, {bytes, 0, 4});
    EXPECT_GE(seconds.value_or(bound), 0.999 * bound) << algorithm.name;
  }
  const auto ring = predict(*findAlgorithm("ring"), {Collective::allReduce, p, 0}, map, {1e12, 0, 4});
  EXPECT_LT(*ring, 1.05 * (100 * bound + 1e12 * 1e-10)) << "and what it takes to add";
}

/// Of tens of thousands of ranks some groups are followed; they tell of all.
TEST(CostModel, SomeGroupsTellOfAll) {
  for (const int p : {4096, 6000, 8192}) {
    const CostMap supernode(supernodes(p));
    const CostMap flat({p, {{{0}, 1e-5, 1 / 6e9, 0}}, 0, 1e-10, 1e-6});
    for (const CostMap* map : {&supernode, &flat}) {
      for (const Collective collective : {Collective::allReduce, Collective::broadcast, Collective::allGather}) {
        const PlanRequest request{collective, p, 0, p % 256 == 0 ? equalGroups(p, {256}) : equalGroups(p, {p}), {}};
        for (const Algorithm& algorithm : algorithms()) {
          if (!algorithm.serves(request)) continue;
          const Exchanges exchanges = exchangesOf(algorithm, request);
          for (const double bytes : {1e3, 1e8}) {
            const ChunkCost all = priceChunk(exchanges, request, *map, bytes, p);
            const ChunkCost some = priceChunk(exchanges, request, *map, bytes, 1024);
            EXPECT_NEAR(some.alone / all.alone, 1, 0.25) << algorithm.name << " " << nameOf(collective) << " " << p;
            EXPECT_NEAR(some.busiest / all.busiest, 1, 0.1) << algorithm.name << " " << nameOf(collective) << " " << p;
          }
        }
      }
    }
  }
}

/// swCaffe's finding: on 4:1 uplinks halves that begin with the farthest are about three times as slow at 1024 nodes.
TEST(CostModel, OversubscriptionCostsTheFarOrderItsFactor) {
  const CostMap map(supernodes(1024));
  const PlanRequest request{Collective::allReduce, 1024, 0};
  const double far = *predict(*findAlgorithm("halving_doubling_far"), request, map, {1e9, 0, 4});
  const double near = *predict(*findAlgorithm("halving_doubling_near"), request, map, {1e9, 0, 4});
  EXPECT_GT(far / near, 2.4);
  EXPECT_LT(far / near, 3.3);
}

}  // namespace
}  // namespace tacc
