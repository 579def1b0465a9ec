// Every rule about a collective's arguments: what is refused, with a message that names the argument, and what passes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>

#include "fake_communicator.hpp"
#include "from_c.hpp"

namespace tacc::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// Rank 1 of 3, with room for three elements of a collective's every rank.
class Arguments : public ::testing::Test {
 protected:
  ~Arguments() override { taccCommDestroy(comm_); }

  void expectRefused(taccResult_t result, const ::testing::Matcher<std::string>& message,
                     taccResult_t expected = taccInvalidArgument) {
    EXPECT_EQ(result, expected);
    EXPECT_THAT(std::string(taccGetLastError(comm_)), message);
    EXPECT_THAT(std::string(taccGetLastError(nullptr)), message);
    EXPECT_TRUE(world_.events().empty()) << "the communicator was asked in spite of the error";
  }
  Call passed(taccResult_t result) {
    EXPECT_EQ(result, taccSuccess) << taccGetLastError(comm_);
    const std::vector<Event> events = world_.events();
    EXPECT_EQ(events.size(), ++calls_);
    return events.empty() ? Call{} : events.back().call;
  }

  FakeWorld world_;
  taccComm_t comm_ = world_.make(1, 3);
  std::size_t calls_ = 0;
  std::array<float, 64> a_{};
  std::array<float, 64> b_{};
};

TEST_F(Arguments, NullBuffersAreNamed) {
  expectRefused(taccAllReduce(nullptr, b_.data(), 4, taccFloat, taccSum, comm_, nullptr),
                AllOf(HasSubstr("taccAllReduce on rank 1 of 3"), HasSubstr("sendbuff is NULL"), HasSubstr("it is 4")));
  expectRefused(taccAllReduce(a_.data(), nullptr, 4, taccFloat, taccSum, comm_, nullptr),
                HasSubstr("recvbuff is NULL"));
  expectRefused(taccBcast(nullptr, 4, taccFloat, 1, comm_, nullptr),
                HasSubstr("taccBcast on rank 1 of 3: buff is NULL"));
  expectRefused(taccAllGather(a_.data(), nullptr, 4, taccFloat, comm_, nullptr),
                AllOf(HasSubstr("recvbuff is NULL"), HasSubstr("sendcount")));
  expectRefused(taccReduceScatter(nullptr, b_.data(), 4, taccFloat, taccSum, comm_, nullptr),
                AllOf(HasSubstr("sendbuff is NULL"), HasSubstr("recvcount")));
  expectRefused(taccSend(nullptr, 4, taccFloat, 0, comm_, nullptr), HasSubstr("sendbuff is NULL"));
  expectRefused(taccRecv(nullptr, 4, taccFloat, 0, comm_, nullptr), HasSubstr("recvbuff is NULL"));
}

TEST_F(Arguments, NullBuffersOfUsedSidesOfRootedCollectives) {
  expectRefused(taccReduce(a_.data(), nullptr, 4, taccFloat, taccSum, 1, comm_, nullptr),
                HasSubstr("recvbuff is NULL"));
  expectRefused(taccBroadcast(nullptr, b_.data(), 4, taccFloat, 1, comm_, nullptr), HasSubstr("sendbuff is NULL"));
  expectRefused(taccGather(a_.data(), nullptr, 4, taccFloat, 1, comm_, nullptr), HasSubstr("recvbuff is NULL"));
  expectRefused(taccScatter(nullptr, b_.data(), 4, taccFloat, 1, comm_, nullptr), HasSubstr("sendbuff is NULL"));
}

TEST_F(Arguments, BuffersThatThisRankDoesNotUseMayBeAnything) {
  auto* const garbage = reinterpret_cast<float*>(std::uintptr_t{3});
  EXPECT_EQ(taccReduce(a_.data(), garbage, 4, taccFloat, taccSum, 0, comm_, nullptr), taccSuccess);
  EXPECT_EQ(taccReduce(a_.data(), nullptr, 4, taccFloat, taccSum, 0, comm_, nullptr), taccSuccess);
  EXPECT_EQ(taccReduce(a_.data(), a_.data() + 1, 4, taccFloat, taccSum, 0, comm_, nullptr), taccSuccess);
  EXPECT_EQ(taccGather(a_.data(), garbage, 4, taccFloat, 2, comm_, nullptr), taccSuccess);
  EXPECT_EQ(taccBroadcast(garbage, b_.data(), 4, taccFloat, 0, comm_, nullptr), taccSuccess);
  EXPECT_EQ(taccScatter(garbage, b_.data(), 4, taccFloat, 0, comm_, nullptr), taccSuccess);
  const std::vector<Event> events = world_.events();
  ASSERT_EQ(events.size(), 6u);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(events[static_cast<std::size_t>(i)].call.receive, nullptr);
  EXPECT_EQ(events[4].call.send, nullptr);
  EXPECT_EQ(events[5].call.send, nullptr);
}

TEST_F(Arguments, CountZeroNeedsNoBuffersAndStillRuns) {
  const Call call = passed(taccAllReduce(nullptr, nullptr, 0, taccFloat, taccMax, comm_, nullptr));
  EXPECT_EQ(call.count, 0u);
  EXPECT_EQ(call.op, taccMax);
}

TEST_F(Arguments, CountsWhoseBytesOverflow) {
  expectRefused(taccAllReduce(a_.data(), b_.data(), SIZE_MAX / 2, taccFloat, taccSum, comm_, nullptr),
                AllOf(HasSubstr("count 9223372036854775807"), HasSubstr("float")));
  expectRefused(taccAllReduce(a_.data(), b_.data(), SIZE_MAX, taccInt8, taccSum, comm_, nullptr), HasSubstr("count"));
  const std::size_t third = static_cast<std::size_t>(PTRDIFF_MAX) / 3;
  expectRefused(taccAllGather(a_.data(), b_.data(), third + 1, taccInt8, comm_, nullptr),
                AllOf(HasSubstr("sendcount"), HasSubstr("for each of 3 ranks")));
  expectRefused(taccReduceScatter(a_.data(), b_.data(), third + 1, taccInt8, taccSum, comm_, nullptr),
                HasSubstr("recvcount"));
  expectRefused(taccGather(a_.data(), nullptr, third + 1, taccInt8, 0, comm_, nullptr), HasSubstr("count"));
  expectRefused(taccSend(a_.data(), SIZE_MAX / 4, taccDouble, 0, comm_, nullptr), HasSubstr("count"));
}

TEST_F(Arguments, CountsBeyondAllAddresses) {
  constexpr std::size_t addresses = std::size_t{1} << 48;
  for (std::size_t bytes = 2 * addresses; bytes != 0; bytes *= 2) {
    expectRefused(taccAllReduce(a_.data(), b_.data(), bytes / 4, taccFloat, taccSum, comm_, nullptr),
                  HasSubstr("address space"));
    expectRefused(taccAllGather(a_.data(), b_.data(), bytes / 3 + 1, taccInt8, comm_, nullptr),
                  HasSubstr("address space"));
    const std::array<std::size_t, 3> counts{1, bytes, 1};
    expectRefused(taccAllGatherV(a_.data(), b_.data(), counts.data(), nullptr, taccInt8, comm_, nullptr),
                  HasSubstr("address space"));
  }
}

TEST_F(Arguments, UnknownTypesAndOperations) {
  expectRefused(taccAllReduce(a_.data(), b_.data(), 4, taccNumTypes, taccSum, comm_, nullptr),
                HasSubstr("datatype 20"));
  expectRefused(taccBroadcast(a_.data(), b_.data(), 4, fromC<taccDataType_t>(-1), 0, comm_, nullptr),
                HasSubstr("datatype -1"));
  expectRefused(taccRecv(a_.data(), 4, fromC<taccDataType_t>(77), 0, comm_, nullptr), HasSubstr("datatype 77"));
  expectRefused(taccAllReduce(a_.data(), b_.data(), 4, taccFloat, fromC<taccRedOp_t>(-1), comm_, nullptr),
                HasSubstr("op -1"));
  expectRefused(taccReduce(a_.data(), b_.data(), 4, taccFloat, taccMaxRedOp, 0, comm_, nullptr),
                HasSubstr("op 2147483647"));
  expectRefused(taccReduceScatter(a_.data(), b_.data(), 4, taccFloat, taccNumOps, comm_, nullptr), HasSubstr("op 13"));
  expectRefused(taccAllReduce(a_.data(), b_.data(), 4, taccComplex64, taccMax, comm_, nullptr),
                AllOf(HasSubstr("op 2 (max) is none of datatype complex64"), HasSubstr("sum, prod, avg")));
  expectRefused(taccAllReduce(a_.data(), b_.data(), 4, taccFloat, taccBitAnd, comm_, nullptr), HasSubstr("band"));
  expectRefused(taccAllReduce(a_.data(), b_.data(), 4, taccFloatInt, taccSum, comm_, nullptr),
                HasSubstr("minloc, maxloc"));
  expectRefused(taccScan(a_.data(), b_.data(), 4, taccFloat, taccAvg, comm_, nullptr), HasSubstr("avg"));
}

TEST_F(Arguments, RootsAndPeersOutOfRange) {
  expectRefused(taccBroadcast(a_.data(), b_.data(), 4, taccFloat, 3, comm_, nullptr),
                AllOf(HasSubstr("root 3"), HasSubstr("0 to 2")));
  expectRefused(taccReduce(a_.data(), b_.data(), 4, taccFloat, taccSum, -1, comm_, nullptr), HasSubstr("root -1"));
  expectRefused(taccGather(a_.data(), b_.data(), 4, taccFloat, 3, comm_, nullptr), HasSubstr("root 3"));
  expectRefused(taccScatter(a_.data(), b_.data(), 4, taccFloat, 3, comm_, nullptr), HasSubstr("root 3"));
  expectRefused(taccSend(a_.data(), 4, taccFloat, 3, comm_, nullptr), HasSubstr("peer 3"));
  expectRefused(taccRecv(a_.data(), 4, taccFloat, -2, comm_, nullptr), HasSubstr("peer -2"));
  expectRefused(taccSend(a_.data(), 4, taccFloat, 1, comm_, nullptr),
                AllOf(HasSubstr("peer 1"), HasSubstr("one group")), taccInvalidUsage);
}

TEST_F(Arguments, BuffersNeedNoAlignment) {
  auto* const odd = reinterpret_cast<char*>(a_.data()) + 1;
  EXPECT_EQ(passed(taccAllReduce(odd, b_.data(), 4, taccFloat, taccSum, comm_, nullptr)).send, odd);
  EXPECT_EQ(passed(taccAllReduce(odd, b_.data(), 4, taccInt8, taccSum, comm_, nullptr)).send, odd);
}

TEST_F(Arguments, OverlapsThatAreNotInPlace) {
  float* const a = a_.data();
  expectRefused(
      taccAllReduce(a, a + 3, 4, taccFloat, taccSum, comm_, nullptr),
      AllOf(HasSubstr("sendbuff"), HasSubstr("recvbuff"), HasSubstr("overlap"), HasSubstr("sendbuff == recvbuff")));
  expectRefused(taccAllReduce(a + 3, a, 4, taccFloat, taccSum, comm_, nullptr), HasSubstr("overlap"));
  expectRefused(taccBroadcast(a, a + 3, 4, taccFloat, 1, comm_, nullptr), HasSubstr("overlap"));
  expectRefused(taccReduce(a, a + 3, 4, taccFloat, taccSum, 1, comm_, nullptr), HasSubstr("overlap"));
  expectRefused(taccAllGather(a, a, 4, taccFloat, comm_, nullptr), HasSubstr("sendbuff == recvbuff + 1 * sendcount"));
  expectRefused(taccAllGather(a + 11, a, 4, taccFloat, comm_, nullptr), HasSubstr("overlap"));
  expectRefused(taccReduceScatter(a, a, 4, taccFloat, taccSum, comm_, nullptr),
                HasSubstr("recvbuff == sendbuff + 1 * recvcount"));
  expectRefused(taccAllToAll(a, a + 11, 4, taccFloat, comm_, nullptr), HasSubstr("overlap"));
  expectRefused(taccGather(a, a, 4, taccFloat, 1, comm_, nullptr), HasSubstr("sendbuff == recvbuff + 1 * count"));
  expectRefused(taccScatter(a, a, 4, taccFloat, 1, comm_, nullptr), HasSubstr("recvbuff == sendbuff + 1 * count"));
}

TEST_F(Arguments, ExactInPlaceAndNeighbouringBuffersPass) {
  float* const a = a_.data();
  EXPECT_EQ(taccAllReduce(a, a, 4, taccFloat, taccSum, comm_, nullptr), taccSuccess);
  EXPECT_EQ(taccAllReduce(a, a + 4, 4, taccFloat, taccSum, comm_, nullptr), taccSuccess);
  EXPECT_EQ(taccAllReduce(a + 4, a, 4, taccFloat, taccSum, comm_, nullptr), taccSuccess);
  EXPECT_EQ(taccBroadcast(a, a, 4, taccFloat, 1, comm_, nullptr), taccSuccess);
  EXPECT_EQ(taccBcast(a, 4, taccFloat, 1, comm_, nullptr), taccSuccess);
  EXPECT_EQ(taccReduce(a, a, 4, taccFloat, taccSum, 1, comm_, nullptr), taccSuccess);
  EXPECT_EQ(taccAllGather(a + 4, a, 4, taccFloat, comm_, nullptr), taccSuccess);
  EXPECT_EQ(taccAllGather(a + 12, a, 4, taccFloat, comm_, nullptr), taccSuccess);
  EXPECT_EQ(taccReduceScatter(a, a + 4, 4, taccFloat, taccSum, comm_, nullptr), taccSuccess);
  EXPECT_EQ(taccReduceScatter(a, a + 12, 4, taccFloat, taccSum, comm_, nullptr), taccSuccess);
  EXPECT_EQ(taccAllToAll(a, a, 4, taccFloat, comm_, nullptr), taccSuccess);
  EXPECT_EQ(taccGather(a + 4, a, 4, taccFloat, 1, comm_, nullptr), taccSuccess);
  EXPECT_EQ(taccScatter(a, a + 4, 4, taccFloat, 1, comm_, nullptr), taccSuccess);
  EXPECT_EQ(taccBarrier(comm_, nullptr), taccSuccess);
  EXPECT_EQ(world_.events().size(), 14u);
}

TEST_F(Arguments, EveryArgumentArrives) {
  const Call call = passed(taccReduce(a_.data(), b_.data(), 5, taccInt32, taccMin, 1, comm_, nullptr));
  EXPECT_EQ(call.collective, Collective::reduce);
  EXPECT_EQ(call.send, a_.data());
  EXPECT_EQ(call.receive, b_.data());
  EXPECT_EQ(call.count, 5u);
  EXPECT_EQ(call.type, taccInt32);
  EXPECT_EQ(call.op, taccMin);
  EXPECT_EQ(call.root, 1);
  EXPECT_EQ(call.factor, nullptr);
}

TEST_F(Arguments, ErrorsOfTheCommunicatorComeThrough) {
  world_.breakRank(1, taccRemoteError, "rank 2 died");
  EXPECT_EQ(taccAllReduce(a_.data(), b_.data(), 4, taccFloat, taccSum, comm_, nullptr), taccRemoteError);
  EXPECT_STREQ(taccGetLastError(comm_), "taccAllReduce on rank 1 of 3: rank 2 died");
  EXPECT_EQ(taccSend(a_.data(), 1, taccFloat, 0, comm_, nullptr), taccRemoteError);
  EXPECT_STREQ(taccGetLastError(comm_), "taccSend on rank 1 of 3: rank 2 died");
}

TEST_F(Arguments, AStreamThatIsNoneIsNotReadThrough) {
  auto* const garbage = reinterpret_cast<taccStream_t>(std::uintptr_t{0x1234});
  expectRefused(taccAllReduce(a_.data(), b_.data(), 4, taccFloat, taccSum, comm_, garbage), HasSubstr("stream 0x1234"));
  expectRefused(taccSend(a_.data(), 4, taccFloat, 0, comm_, garbage), HasSubstr("stream 0x1234"));
}

}  // namespace
}  // namespace tacc::test
