// What tests of communicators that are split off one of a single host have in common.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <vector>

#include "fault_team.hpp"
#include "rank_harness.hpp"

namespace tacc::test {

/// How many programs, and how many faults of each kind, are drawn: SPLIT_ROUNDS, or 6; 2 with TACC_TEST_QUICK.
inline int splitRounds() {
  const char* const given = std::getenv("SPLIT_ROUNDS");
  return given != nullptr ? std::atoi(given) : isQuick() ? 2 : 6;
}

inline taccComm_t split(taccComm_t comm, int color, int key) {
  taccComm_t part = nullptr;
  EXPECT_EQ(taccCommSplit(comm, color, key, &part, nullptr), taccSuccess) << taccGetLastError(comm);
  return part;
}

/// Of ranks of `comm`, who alone call it.
inline taccComm_t createGroup(taccComm_t comm, const std::vector<int>& ranks) {
  taccComm_t group = nullptr;
  EXPECT_EQ(taccCommCreateGroup(comm, ranks.data(), static_cast<int>(ranks.size()), &group, nullptr), taccSuccess)
      << taccGetLastError(comm);
  return group;
}

/// A communicator, and who is in it by the numbers of the first one.
struct Part {
  taccComm_t comm;
  std::vector<int> members;
};

/// Sums of `count` floats that only these members can make, and a broadcast.
inline void expectWorks(const Part& part, int self, std::size_t count) {
  std::vector<float> own(count, static_cast<float>(1 << self)), sum(count);
  ASSERT_EQ(taccAllReduce(own.data(), sum.data(), count, taccFloat32, taccSum, part.comm, nullptr), taccSuccess)
      << taccGetLastError(part.comm);
  float expected = 0;
  for (const int member : part.members) expected += static_cast<float>(1 << member);
  EXPECT_EQ(std::ranges::count(sum, expected), static_cast<std::ptrdiff_t>(count)) << sum.front();
  int first = self;
  ASSERT_EQ(taccBcast(&first, 1, taccInt32, 0, part.comm, nullptr), taccSuccess) << taccGetLastError(part.comm);
  EXPECT_EQ(first, part.members.front());
  const auto place = std::ranges::find(part.members, self) - part.members.begin();
  const auto all = static_cast<std::ptrdiff_t>(part.members.size());
  if (all < 2) return;
  const int next = static_cast<int>((place + 1) % all), previous = static_cast<int>((place + all - 1) % all);
  std::vector<float> got(count);
  ASSERT_EQ(taccGroupStart(), taccSuccess);
  ASSERT_EQ(taccSend(own.data(), count, taccFloat32, next, part.comm, nullptr), taccSuccess);
  ASSERT_EQ(taccRecv(got.data(), count, taccFloat32, previous, part.comm, nullptr), taccSuccess);
  ASSERT_EQ(taccGroupEnd(), taccSuccess) << taccGetLastError(part.comm);
  EXPECT_EQ(got.back(), static_cast<float>(1 << part.members[static_cast<std::size_t>(previous)]));
}

}  // namespace tacc::test
