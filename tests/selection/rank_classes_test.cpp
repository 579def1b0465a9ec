// Which ranks are taken for alike: as many classes as there are parts to play, and never two parts in one.
#include "selection/cost/rank_classes.hpp"

#include <gtest/gtest.h>

#include <string_view>
#include <utility>
#include <vector>

#include "selection/cost/cost_model.hpp"

namespace tacc {
namespace {

constexpr double beta = 1e-9;

CostMap flat(int p, Capacities ports = 0) { return CostMap({p, {{{0}, 1e-5, beta, 0}}, std::move(ports), 0, 1e-6}); }
CostMap grouped(int p, int size, Capacities uplinks) {
  return CostMap({p, {{groupsOfSize(p, size), 1e-6, beta, std::move(uplinks)}, {{0}, 1e-5, beta, 0}}, 0, 0, 1e-6});
}

RankClasses classesOf(std::string_view name, const CostMap& map, Collective collective = Collective::allReduce) {
  double budget = 1e6;
  return tacc::classesOf(exchangesOf(*findAlgorithm(name), {collective, map.ranks(), 0}), map, budget).value();
}

TEST(RankClasses, AllAreAlikeWhereAllDoTheSame) {
  for (const char* name : {"ring", "halving_doubling_near", "recursive_doubling", "swing", "twoshot"}) {
    EXPECT_EQ(classesOf(name, flat(64)).count(), 1) << name;
  }
  EXPECT_EQ(classesOf("ring", flat(60)).count(), 1);
  EXPECT_EQ(classesOf("halving_doubling_near", grouped(64, 8, 1 / beta)).count(), 1);
}

TEST(RankClasses, OnesWhoseMessagesAreCutElsewhereDiffer) {
  EXPECT_EQ(classesOf("circulant", flat(64)).count(), 64) << "its blocks wrap round at another place on every rank";
}

TEST(RankClasses, OneSlowPortOrUplinkTellsApartWhoExchangesWithIt) {
  std::vector<double> ports(64, 1e9);
  ports[5] = 1e8;
  const RankClasses slow = classesOf("halving_doubling_near", flat(64, ports));
  EXPECT_GT(slow.count(), 6) << "who is how many exchanges away from it";
  for (int r = 0; r < 64; ++r) EXPECT_EQ(slow.classOf[5] == slow.classOf[static_cast<std::size_t>(r)], r == 5) << r;
  std::vector<double> uplinks(8, 1e9);
  uplinks[3] = 1e8;
  const RankClasses narrow = classesOf("ring", grouped(64, 8, uplinks));
  EXPECT_NE(narrow.groupsOf[0][3], narrow.groupsOf[0][0]);
  EXPECT_EQ(narrow.count(), 64) << "each is somewhere else in the ring";
}

TEST(RankClasses, PlacesOnAChainAndNearTheEndOfAGroupDiffer) {
  EXPECT_EQ(classesOf("chain", flat(32), Collective::broadcast).count(), 32);
  const RankClasses ring = classesOf("ring", grouped(64, 8, 1 / beta));
  EXPECT_EQ(ring.count(), 8) << "places in a group";
  for (int r = 0; r < 64; ++r) EXPECT_EQ(ring.classOf[static_cast<std::size_t>(r)], r % 8);
}

TEST(RankClasses, LinksInsideGroupsTellAllApart) {
  std::vector<std::uint32_t> places;
  for (std::uint32_t place = 0; place < 16; ++place) places.push_back(place);
  const CostMap torus({16, {{{0}, 1e-5, beta, 0, {4, 4}, places, 1 / beta}}, 0, 0, 1e-6});
  EXPECT_EQ(classesOf("ring", torus).count(), 16);
}

}  // namespace
}  // namespace tacc
