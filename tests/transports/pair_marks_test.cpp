// The marks in tags: the same at both ends of a pair and direction, and of no other.
#include "transports/pair_marks.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <set>

namespace tacc::test {
namespace {

std::vector<std::unique_ptr<PairMarks>> team(int ranks, const Key& secret, int bits) {
  std::vector<std::unique_ptr<PairMarks>> all;
  for (int rank = 0; rank < ranks; ++rank) all.push_back(std::make_unique<PairMarks>(rank, ranks, secret, bits));
  for (const auto& one : all)
    for (int peer = 0; peer < ranks; ++peer) one->setNonce(peer, all[static_cast<std::size_t>(peer)]->nonce());
  return all;
}

TEST(PairMarks, BothEndsAgreeAndNoTwoSendersOfOneReceiverAreAlike) {
  for (const int bits : {8, 16, 32})
    for (const int ranks : {1, 2, 7, 64, 200}) {
      const auto all = team(ranks, makeNonce(), bits);
      for (int to = 0; to < ranks; ++to) {
        std::set<std::uint64_t> seen;
        for (int from = 0; from < ranks; ++from) {
          const std::uint64_t field = all[static_cast<std::size_t>(from)]->sending(to);
          ASSERT_EQ(field, all[static_cast<std::size_t>(to)]->receiving(from));
          ASSERT_LT(field, std::uint64_t{1} << bits);
          ASSERT_TRUE(seen.insert(field).second);
        }
      }
    }
}

TEST(PairMarks, NobodyElseKnowsThem) {
  const Key secret = makeNonce();
  const auto job = team(8, secret, 32), again = team(8, secret, 32), other = team(8, makeNonce(), 32);
  int alike = 0;
  for (std::size_t to = 0; to < 8; ++to)
    for (int from = 0; from < 8; ++from) {
      const std::uint64_t right = job[to]->receiving(from);
      other[to]->setNonce(from, job[to]->nonce());  // who knows the nonce, but not the secret
      alike += right == again[to]->receiving(from) ? 1 : 0;
      alike += right == other[static_cast<std::size_t>(from)]->sending(static_cast<int>(to)) ? 1 : 0;
      alike += right == static_cast<std::uint64_t>(from) ? 1 : 0;
    }
  EXPECT_EQ(alike, 0);  // of 192, each with a chance of one in 2^28
}

}  // namespace
}  // namespace tacc::test
