// Max-min shares of links: what changes from message to message against what is found anew of all of them.
#include "selection/cost/link_shares.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "draw.hpp"

namespace tacc::test {
namespace {

/// Messages that cross one to four links each, some of them several times over.
PlayModel drawModel(Draw& draw) {
  PlayModel model;
  const int links = draw.between(1, 12), messages = draw.between(1, 40);
  const bool areAlike = draw.chance(0.5);
  for (int l = 0; l < links; ++l) model.capacities.push_back(areAlike ? 100 : draw.between(1, 10) * 20);
  for (int m = 0; m < messages; ++m) {
    model.messages.push_back({0, m, 1, 0, draw.chance(0.5) ? 100.0 : draw.between(1, 100)});
    std::map<int, int> crossed;
    for (int i = draw.between(1, std::min(4, links)); i > 0; --i)
      crossed[draw.below(links)] = draw.chance(0.8) ? 1 : draw.between(2, 4);
    for (const auto& [link, times] : crossed) model.crossings.items.push_back({link, times});
    model.crossings.close();
  }
  return model;
}

/// All rates grow together; a message whose stream or one of whose links is full keeps its rate.
std::map<int, double> ratesOf(const PlayModel& model, const std::map<int, int>& underWay) {
  std::map<int, double> rates;
  std::vector<double> left = model.capacities;
  std::map<int, int> open = underWay;
  double level = 0;
  while (!open.empty()) {
    std::vector<int> crossing(left.size(), 0);
    for (const auto& [flow, message] : open)
      for (const auto& [link, times] : model.crossings.of(message)) crossing[at(link)] += times;
    double step = 1e300;
    for (std::size_t l = 0; l < left.size(); ++l)
      if (crossing[l] > 0) step = std::min(step, left[l] / crossing[l]);
    for (const auto& [flow, message] : open) step = std::min(step, model.messages[at(message)].rate - level);
    level += step;
    for (std::size_t l = 0; l < left.size(); ++l) left[l] -= step * crossing[l];
    for (auto one = open.begin(); one != open.end();) {
      const auto links = model.crossings.of(one->second);
      const bool isFull =
          level >= model.messages[at(one->second)].rate - 1e-7 ||
          std::ranges::any_of(links, [&](const PlayModel::Crossing& crossed) { return left[at(crossed.link)] < 1e-7; });
      if (isFull) rates[one->first] = level;
      one = isFull ? open.erase(one) : std::next(one);
    }
  }
  return rates;
}

TEST(LinkShares, AreWhatIsFoundAnew) {
  for (std::uint64_t number = 0; number < 400; ++number) {
    Draw draw(number);
    const PlayModel model = drawModel(draw);
    LinkShares shares(model);
    std::map<int, int> underWay;
    std::map<int, double> rates;
    for (int turn = 0; turn < 60; ++turn) {
      for (int changes = draw.between(1, 3); changes > 0; --changes) {
        const int flow = draw.below(30);
        if (underWay.contains(flow)) {
          shares.remove(flow);
          underWay.erase(flow);
          rates.erase(flow);
        } else {
          underWay[flow] = draw.below(static_cast<int>(model.messages.size()));
          shares.add(flow, underWay[flow]);
        }
      }
      shares.settle([&](int flow, double rate) { rates[flow] = rate; });
      for (const auto& [flow, rate] : ratesOf(model, underWay))
        ASSERT_NEAR(rates[flow], rate, 1e-5 * rate) << "draw " << number << ", turn " << turn << ", flow " << flow;
    }
  }
}

/// Where each message counts for more in the way of others, nothing of what one leaves goes to another.
TEST(LinkShares, OfACrowdAreLess) {
  PlayModel model;
  model.capacities = {100, 20};
  model.messages = {{0, 0, 1, 0, 100}, {0, 1, 1, 0, 100}};
  model.crossings.items = {{0, 1}, {0, 1}, {1, 1}};
  model.crossings.ends = {1, 3};
  for (const double crowding : {1.0, 2.0}) {
    model.crowding = crowding;
    LinkShares shares(model);
    std::vector<double> rates(2);
    shares.add(0, 0);
    shares.add(1, 1);
    shares.settle([&](int flow, double rate) { rates[at(flow)] = rate; });
    EXPECT_NEAR(rates[0], crowding == 1 ? 80 : 100 / 3.0, 1e-9);
    EXPECT_NEAR(rates[1], 20, 1e-9);
  }
}

}  // namespace
}  // namespace tacc::test
