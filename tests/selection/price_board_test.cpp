// What ranks of a host share of prices: found once, the same for all, and never waited for in vain.
#include "selection/price_board.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

namespace tacc {
namespace {

/// Prices that tell for which kind they were found.
std::vector<NetworkCandidate> pricesOf(const PriceBoard::Kind& kind) {
  std::vector<NetworkCandidate> candidates;
  for (std::size_t i = algorithms().size(); i-- > 0;) {
    const double seconds = static_cast<double>(kind.bytes) + kind.root + static_cast<double>(i);
    candidates.push_back({&algorithms()[i], i % 3 != 0, seconds / 2, seconds, seconds * 3, seconds * 5, i % 2 == 0,
                          "of whoever found it"});
  }
  return candidates;
}

void expectEqual(const std::vector<NetworkCandidate>& a, const std::vector<NetworkCandidate>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].algorithm, b[i].algorithm);
    EXPECT_EQ(a[i].isPossible, b[i].isPossible);
    EXPECT_EQ(a[i].isPlayed, b[i].isPlayed);
    EXPECT_EQ(a[i].chunkBytes, b[i].chunkBytes);
    EXPECT_EQ(a[i].seconds, b[i].seconds);
    EXPECT_EQ(a[i].alone, b[i].alone);
    EXPECT_EQ(a[i].busiest, b[i].busiest);
  }
}

class Memory {
 public:
  explicit Memory(std::size_t kinds)
      : bytes_(PriceBoard::bytesFor(kinds)), memory_(new (std::align_val_t{64}) std::byte[bytes_]) {
    std::memset(memory_.get(), 0, bytes_);
  }
  std::span<std::byte> get() const { return {memory_.get(), bytes_}; }

 private:
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete[](memory, std::align_val_t{64}); }
  };
  std::size_t bytes_;
  std::unique_ptr<std::byte[], Free> memory_;
};

/// Kinds of which many differ in one thing only.
std::vector<PriceBoard::Kind> drawnKinds(std::mt19937& random, int count) {
  std::vector<PriceBoard::Kind> kinds;
  for (int k = 0; k < count; ++k) {
    const std::size_t power = std::size_t{1} << random() % 40;
    const std::size_t bytes = power < 8 ? power : power + power / 8 * (random() % 8);
    kinds.push_back({static_cast<Collective>(random() % 4), static_cast<int>(random() % 3), bytes});
  }
  return kinds;
}

TEST(PriceBoard, EveryKindIsFoundOnceByOneOfManyRanks) {
  std::mt19937 random(25);
  for (int trial = 0; trial < 20; ++trial) {
    const std::vector<PriceBoard::Kind> kinds = drawnKinds(random, 40);
    const Memory memory(kinds.size());
    std::vector<std::atomic<int>> found(kinds.size());
    const auto isSame = [](const PriceBoard::Kind& a, const PriceBoard::Kind& b) {
      return a.collective == b.collective && a.root == b.root && a.bytes == b.bytes;
    };
    const auto firstLike = [&](std::size_t k) {
      std::size_t first = 0;
      while (!isSame(kinds[first], kinds[k])) ++first;
      return first;
    };
    std::vector<std::thread> ranks;
    for (unsigned rank = 0; rank < 4; ++rank)
      ranks.emplace_back([&, rank] {
        PriceBoard board(memory.get(), [] {});
        std::mt19937 own(rank);
        for (int call = 0; call < 200; ++call) {
          const std::size_t k = own() % kinds.size();
          expectEqual(board.candidates(kinds[k],
                                       [&] {
                                         ++found[firstLike(k)];
                                         return pricesOf(kinds[k]);
                                       }),
                      pricesOf(kinds[k]));
        }
      });
    for (std::thread& rank : ranks) rank.join();
    for (const std::atomic<int>& times : found) EXPECT_LE(times, 1);
  }
}

TEST(PriceBoard, WithoutRoomOrForOtherSizesEveryRankFindsItsOwn) {
  const Memory memory(1);
  PriceBoard none, one(memory.get(), [] {}), other(memory.get(), [] {});
  const PriceBoard::Kind first{Collective::allReduce, 0, 64}, second{Collective::allReduce, 0, 128},
      odd{Collective::allReduce, 0, 1001};
  int found = 0;
  const auto ask = [&](PriceBoard& board, const PriceBoard::Kind& kind) {
    expectEqual(board.candidates(kind,
                                 [&] {
                                   ++found;
                                   return pricesOf(kind);
                                 }),
                pricesOf(kind));
    return found;
  };
  EXPECT_EQ(ask(none, first), 1);
  EXPECT_EQ(ask(one, odd), 2);
  EXPECT_EQ(ask(other, odd), 3);
  EXPECT_EQ(ask(one, first), 4);
  EXPECT_EQ(ask(other, first), 4);
  EXPECT_EQ(ask(one, second), 5);
  EXPECT_EQ(ask(other, second), 6);
}

TEST(PriceBoard, WhoFailsIsNotWaitedFor) {
  const Memory memory(1);
  PriceBoard one(memory.get(), [] {}), other(memory.get(), [] {});
  const PriceBoard::Kind kind{Collective::broadcast, 7, 4096};
  EXPECT_THROW((void)one.candidates(kind, []() -> std::vector<NetworkCandidate> { throw std::bad_alloc(); }),
               std::bad_alloc);
  expectEqual(other.candidates(kind, [&] { return pricesOf(kind); }), pricesOf(kind));
}

TEST(PriceBoard, AWaitEndsWhenTheCommunicatorHasFailed) {
  const Memory memory(1);
  const PriceBoard::Kind kind{Collective::broadcast, 7, 4096};
  std::atomic<bool> isMaking{false}, hasThrown{false};
  std::thread maker([&] {
    PriceBoard(memory.get(), [] {}).candidates(kind, [&] {
      isMaking = true;
      while (!hasThrown) std::this_thread::yield();
      return pricesOf(kind);
    });
  });
  while (!isMaking) std::this_thread::yield();
  PriceBoard waiting(memory.get(), [] { throw std::runtime_error("aborted"); });
  EXPECT_THROW((void)waiting.candidates(kind, [&] { return pricesOf(kind); }), std::runtime_error);
  hasThrown = true;
  maker.join();
}

}  // namespace
}  // namespace tacc
