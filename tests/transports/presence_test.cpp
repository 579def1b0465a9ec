// Who is still in a communicator, among those that share claims; and pages that are committed when they are used.
#include "transports/shm/presence.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "transports/shm/area_pages.hpp"
#include "transports/shm/shared_memory.hpp"

namespace tacc {
namespace {

constexpr NodeGeometry geometry{
    .ranks = 3, .eagerBytes = 32768, .arenaBytes = 2048 * 1024, .pairBytes = 256 * 1024, .hasMessages = false};

class PresenceTest : public testing::Test {
 protected:
  std::shared_ptr<const Liveness> claim(int number) { return std::make_shared<const Liveness>(claims_.fd(), number); }
  Presence presence(const std::shared_ptr<SharedMemory>& memory, int rank, std::shared_ptr<const Liveness> claim,
                    std::vector<int> claimOf) {
    return {NodeSegment(memory->data(), geometry), memory, rank, std::move(claim), std::move(claimOf)};
  }
  static std::shared_ptr<SharedMemory> segment() {
    return std::make_shared<SharedMemory>(
        SharedMemory::create(NodeSegment::bytesFor(geometry), "presence", Reserve::onTouch));
  }

  SharedMemory claims_ = SharedMemory::create(4096, "claims");
};

TEST_F(PresenceTest, WhoLeavesOneOfSeveralIsGoneThereAlone) {
  const auto whole = segment(), part = segment();
  const auto first = claim(0), second = claim(1);
  Presence inWhole = presence(whole, 1, second, {0, 1, 2}), inPart = presence(part, 0, second, {1, 0});
  const Presence watchesWhole = presence(whole, 0, first, {0, 1, 2}), watchesPart = presence(part, 1, first, {1, 0});
  EXPECT_TRUE(watchesWhole.isThere(1));
  EXPECT_TRUE(watchesPart.isThere(0));
  EXPECT_FALSE(watchesWhole.isThere(2));  // has no claim
  inWhole.leave();
  EXPECT_FALSE(watchesWhole.isThere(1));
  EXPECT_TRUE(watchesPart.isThere(0));
  inPart.leave();
  EXPECT_FALSE(watchesPart.isThere(0));
}

TEST_F(PresenceTest, TheClaimStandsUntilTheLastOneHasGone) {
  const auto whole = segment(), part = segment();
  const auto watcher = claim(0);
  auto shared = claim(1);
  const auto make = [&](const std::shared_ptr<SharedMemory>& memory, int rank, std::vector<int> claimOf) {
    return std::make_unique<Presence>(NodeSegment(memory->data(), geometry), memory, rank, shared, std::move(claimOf));
  };
  auto inWhole = make(whole, 1, {0, 1, 2}), inPart = make(part, 0, {1, 0});
  shared.reset();
  inWhole.reset();
  EXPECT_TRUE(watcher->isAlive(1));
  inPart.reset();
  EXPECT_FALSE(watcher->isAlive(1));
}

TEST_F(PresenceTest, TheLastAgreementThatPassedARankIsKept) {
  const auto whole = segment();
  const Presence teller = presence(whole, 0, claim(0), {0, 1, 2}), hearer = presence(whole, 1, claim(1), {0, 1, 2});
  EXPECT_EQ(hearer.passed(), std::nullopt);
  teller.tellPassed(1, 0);
  EXPECT_EQ(hearer.passed(), 0U);
  teller.tellPassed(1, 7);
  teller.tellPassed(1, 3);
  EXPECT_EQ(hearer.passed(), 7U);
  EXPECT_EQ(teller.passed(), std::nullopt);
}

std::size_t committed(const SharedMemory& memory) {
  struct stat status {};
  EXPECT_EQ(::fstat(memory.fd(), &status), 0);
  return static_cast<std::size_t>(status.st_blocks) * 512;
}

TEST(AreaPages, AreCommittedPartByPartWhenTheyAreUsed) {
  if (!commitsByAddress()) GTEST_SKIP() << "this kernel commits pages by descriptor alone";
  const SharedMemory memory = SharedMemory::create(NodeSegment::bytesFor(geometry), "pages", Reserve::onTouch);
  const NodeSegment segment(memory.data(), geometry);
  AreaPages pages(segment, 0, memory.fd());
  EXPECT_LE(committed(memory), 4 * pageBytes);
  const AreaPages of(segment, 1, memory.fd());
  const std::size_t begun = committed(memory);
  EXPECT_LE(begun, 7 * pageBytes);
  struct Step {
    AreaPart part;
    std::size_t bytes;
  };
  std::size_t before = begun;
  for (const auto& [part, bytes] :
       {Step{AreaPart::eager, 4 * geometry.eagerBytes}, Step{AreaPart::arena, geometry.arenaBytes},
        Step{AreaPart::pairs, geometry.pairBytes}}) {
    pages.need(part);
    const std::size_t now = committed(memory);
    EXPECT_GE(now - before + 2 * pageBytes, bytes);
    EXPECT_LE(now - before, bytes + 4 * pageBytes);
    pages.need(part);
    EXPECT_EQ(committed(memory), now);
    before = now;
  }
  AreaPages all;
  all.need(AreaPart::arena);  // all are there: nothing to do
}

TEST(AreaPages, AreCommittedAsFarAsTheyAreUsed) {
  if (!commitsByAddress()) GTEST_SKIP() << "this kernel commits pages by descriptor alone";
  NodeGeometry large = geometry;
  large.arenaBytes = std::size_t{4} << 20;
  const SharedMemory memory = SharedMemory::create(NodeSegment::bytesFor(large), "pages", Reserve::onTouch);
  AreaPages pages(NodeSegment(memory.data(), large), 0, memory.fd());
  const std::size_t begun = committed(memory);
  const auto taken = [&] { return committed(memory) - begun; };
  pages.need(AreaPart::arena, 0);
  EXPECT_EQ(taken(), 0U);
  for (const std::size_t bytes : {std::size_t{1000}, std::size_t{300000}, std::size_t{310000}, std::size_t{1} << 20}) {
    pages.need(AreaPart::arena, bytes);
    const std::size_t now = taken();
    EXPECT_GE(now + pageBytes, bytes);
    EXPECT_LE(now, std::max<std::size_t>(2 * bytes, 64 << 10) + 2 * pageBytes);
    pages.need(AreaPart::arena, bytes / 2);
    EXPECT_EQ(taken(), now);
  }
  pages.need(AreaPart::arena, 2 * large.arenaBytes);
  EXPECT_GE(taken() + pageBytes, large.arenaBytes);
  EXPECT_LE(taken(), large.arenaBytes + 2 * pageBytes);
}

}  // namespace
}  // namespace tacc
