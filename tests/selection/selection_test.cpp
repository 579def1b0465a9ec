#include "selection/selection.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>

#include "core/error.hpp"

namespace tacc::test {
namespace {

std::string messageOf(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Selection, servesEveryCallOfEverySize) {
  for (int c = 0; c < collectiveCount; ++c)
    for (int ranks = 1; ranks <= 64; ++ranks)
      for (const std::size_t bytes : {std::size_t{1}, std::size_t{1} << 16, std::size_t{1} << 30}) {
        const CallShape shape{{static_cast<Collective>(c), ranks, 0}, bytes, false, {}};
        EXPECT_TRUE(selectAlgorithm(shape, {}).serves(shape.request));
      }
}

TEST(Selection, cutsAOneWayCallSoThatItsRanksWorkAtTheSameTime) {
  const auto chunkOf = [](Collective collective, std::size_t bytes, bool oversubscribed) {
    return stagingChunk({{collective, 2, 0}, bytes, oversubscribed, {}});
  };
  for (const Collective c : {Collective::broadcast, Collective::scatter, Collective::reduce}) {
    std::size_t last = 0;
    for (std::size_t bytes = 1; bytes <= std::size_t{1} << 30; bytes *= 2) {
      const std::size_t chunk = chunkOf(c, bytes, false);
      EXPECT_GE(chunk, std::max(last, std::size_t{4096})) << bytes;
      EXPECT_LE(chunk, chunkOf(Collective::allReduce, bytes, false)) << bytes;
      if (bytes >= std::size_t{1} << 18) {
        EXPECT_GE(bytes / chunk, 8U) << bytes;
      }
      EXPECT_EQ(chunkOf(c, bytes, true), chunkOf(Collective::allReduce, bytes, true)) << "taking turns on a core";
      last = chunk;
    }
  }
}

TEST(Selection, takesTheForcedAlgorithm) {
  const CallShape shape{{Collective::allReduce, 6, 0}, 1 << 20, false, "circulant"};
  EXPECT_EQ(selectAlgorithm(shape, {}).name, "circulant");
  EXPECT_EQ(eagerLimit(shape, 32768), 0U) << "a forced algorithm runs at every size";
}

TEST(Selection, refusesAnImpossibleOneAndListsThePossible) {
  const CallShape shape{{Collective::broadcast, 6, 0}, 1 << 20, false, "recursive_doubling"};
  const std::string message = messageOf([&] { selectAlgorithm(shape, {}); });
  EXPECT_NE(message.find("recursive_doubling does not serve broadcast of 6 ranks"), std::string::npos) << message;
  EXPECT_NE(message.find("binomial"), std::string::npos) << message;
}

TEST(Selection, refusesAHierarchyOfRanksThatNobodyGrouped) {
  CallShape shape{{Collective::allReduce, 8, 0}, 1 << 20, false, "hierarchical"};
  const std::string message = messageOf([&] { selectAlgorithm(shape, {}); });
  EXPECT_NE(message.find("hierarchical does not serve allreduce of 8 ranks; these do: oneshot"), std::string::npos);
  shape.request.groups = equalGroups(8, {4});
  EXPECT_EQ(selectAlgorithm(shape, {}).name, "hierarchical");
}

TEST(Selection, refusesAnUnknownName) {
  EXPECT_EQ(messageOf([] { checkAlgorithmName("", "here"); }), "no error");
  EXPECT_EQ(messageOf([] { checkAlgorithmName("ring", "here"); }), "no error");
  const std::string message = messageOf([] { checkAlgorithmName("rinng", "TACC_ALGO"); });
  EXPECT_NE(message.find("TACC_ALGO names the algorithm 'rinng'"), std::string::npos) << message;
  EXPECT_NE(message.find("twoshot"), std::string::npos) << message;
}

}  // namespace
}  // namespace tacc::test
