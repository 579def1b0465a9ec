// The size of pieces follows what is faster, whatever else disturbs the times.
#include "transports/segment_choice.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace tacc::test {
namespace {

constexpr std::size_t messageBytes = 8 << 20;

/// Sends `messages`, a byte in pieces of each size taking so many ns, times a disturbance; those that went each way.
std::array<int, 2> send(SegmentChoice& choice, int messages, std::array<double, 2> nsPerByte, unsigned seed) {
  std::mt19937 random(seed);
  std::array<int, 2> sent{};
  for (int i = 0; i < messages; ++i) {
    const SegmentChoice::Message message = choice.next();
    const std::size_t way = message.segment == SegmentChoice::sizes[0] ? 0 : 1;
    EXPECT_EQ(message.segment, SegmentChoice::sizes[way]);
    ++sent[way];
    const double disturbance = random() % 16 == 0 ? 5.0 : 1.0 + 0.02 * static_cast<double>(random() % 3);
    const std::size_t bytes = messageBytes >> random() % 3;
    choice.note(message, bytes, 1e-9 * nsPerByte[way] * static_cast<double>(bytes) * disturbance);
  }
  return sent;
}

TEST(SegmentChoice, TakesTheFasterOne) {
  constexpr int messages = 3 * 2048;
  constexpr unsigned seeds = 200;
  for (const std::size_t fast : {0U, 1U}) {
    std::array<double, 2> ns = {1.0, 1.0};
    ns[1 - fast] = 1.5;
    int slow = 0;
    for (unsigned seed = 0; seed < seeds; ++seed) {
      SegmentChoice choice;
      slow += send(choice, messages, ns, seed)[1 - fast];
    }
    // The trials alone are 1.2 %.
    EXPECT_LE(slow, messages * static_cast<int>(seeds) / 40) << "the faster is " << fast;
  }
}

constexpr int period = 2048;

TEST(SegmentChoice, NoticesThatTheOtherBecameFaster) {
  SegmentChoice choice;
  send(choice, period, {1.0, 1.5}, 1);
  send(choice, period, {1.5, 1.0}, 2);
  EXPECT_LE(send(choice, period, {1.5, 1.0}, 3)[0], period / 50);
}

TEST(SegmentChoice, StaysWhereNeitherIsFaster) {
  SegmentChoice choice;
  send(choice, period, {1.5, 1.0}, 1);
  EXPECT_LE(send(choice, 10 * period, {1.0, 1.02}, 2)[0], 10 * period / 50);
}

TEST(SegmentChoice, TimesThatNeverComeChangeNothing) {
  SegmentChoice choice;
  for (int i = 0; i < 3 * period; ++i) choice.next();
  EXPECT_LE(send(choice, period, {1.5, 1.0}, 1)[0], period / 20);
}

}  // namespace
}  // namespace tacc::test
