// PreMulSum operators: whose they are, what they may be used with, and that their factor arrives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "fake_communicator.hpp"
#include "from_c.hpp"

namespace tacc::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class Operators : public ::testing::Test {
 protected:
  ~Operators() override {
    taccCommDestroy(comm_);
    taccCommDestroy(other_);
  }
  taccRedOp_t make(float factor) {
    taccRedOp_t op = taccNumOps;
    EXPECT_EQ(taccRedOpCreatePreMulSum(&op, &factor, taccFloat, taccScalarHostImmediate, comm_), taccSuccess);
    return op;
  }
  taccResult_t reduce(taccRedOp_t op, taccComm_t comm, taccDataType_t type = taccFloat) {
    return taccAllReduce(in_, out_, 2, type, op, comm, nullptr);
  }
  std::string error(taccComm_t comm) { return taccGetLastError(comm); }

  FakeWorld world_;
  taccComm_t comm_ = world_.make(0, 2);
  taccComm_t other_ = world_.make(1, 2);
  float in_[2] = {1, 10};
  float out_[2] = {};
};

TEST_F(Operators, TheFactorIsCopiedAndMultiplies) {
  const taccRedOp_t half = make(0.5F);
  const taccRedOp_t triple = make(3.0F);
  EXPECT_GE(half, taccNumOps);
  EXPECT_NE(half, triple);
  ASSERT_EQ(reduce(triple, comm_), taccSuccess);
  EXPECT_EQ(out_[1], 60.0F);
  EXPECT_EQ(world_.events().back().call.op, taccSum);
  ASSERT_EQ(reduce(half, comm_), taccSuccess);
  EXPECT_EQ(out_[1], 10.0F);
}

TEST_F(Operators, OnlyWithTheirOwnCommunicatorAndType) {
  const taccRedOp_t op = make(2.0F);
  EXPECT_EQ(reduce(op, other_), taccInvalidArgument);
  EXPECT_THAT(error(other_), AllOf(HasSubstr("op "), HasSubstr("not an operator of this communicator")));
  EXPECT_EQ(reduce(op, comm_, taccInt32), taccInvalidArgument);
  EXPECT_THAT(error(comm_), AllOf(HasSubstr("datatype float"), HasSubstr("int32")));
  EXPECT_EQ(taccRedOpDestroy(op, other_), taccInvalidArgument);
  EXPECT_TRUE(world_.events().empty());
}

TEST_F(Operators, DestroyedAndBuiltInOnes) {
  const taccRedOp_t op = make(2.0F);
  EXPECT_EQ(taccRedOpDestroy(op, comm_), taccSuccess);
  EXPECT_EQ(reduce(op, comm_), taccInvalidArgument);
  EXPECT_THAT(error(comm_), HasSubstr("destroyed"));
  EXPECT_EQ(taccRedOpDestroy(op, comm_), taccInvalidArgument);
  EXPECT_EQ(taccRedOpDestroy(taccSum, comm_), taccInvalidArgument);
  EXPECT_THAT(error(comm_), HasSubstr("built in"));
  EXPECT_TRUE(world_.events().empty());
}

TEST_F(Operators, BadArguments) {
  float factor = 1;
  taccRedOp_t op = taccSum;
  EXPECT_EQ(taccRedOpCreatePreMulSum(nullptr, &factor, taccFloat, taccScalarDevice, comm_), taccInvalidArgument);
  EXPECT_THAT(error(comm_), HasSubstr("op is NULL"));
  EXPECT_EQ(taccRedOpCreatePreMulSum(&op, nullptr, taccFloat, taccScalarDevice, comm_), taccInvalidArgument);
  EXPECT_THAT(error(comm_), HasSubstr("scalar is NULL"));
  EXPECT_EQ(taccRedOpCreatePreMulSum(&op, &factor, taccNumTypes, taccScalarDevice, comm_), taccInvalidArgument);
  EXPECT_THAT(error(comm_), HasSubstr("datatype 20"));
  EXPECT_EQ(taccRedOpCreatePreMulSum(&op, &factor, taccFloat, fromC<taccScalarResidence_t>(2), comm_),
            taccInvalidArgument);
  EXPECT_THAT(error(comm_), HasSubstr("residence 2"));
  EXPECT_EQ(taccRedOpCreatePreMulSum(&op, &factor, taccFloat, taccScalarDevice, nullptr), taccInvalidArgument);
  EXPECT_EQ(op, taccSum);
}

TEST_F(Operators, AnyNumberOneAfterTheOther) {
  std::set<taccRedOp_t> numbers;
  for (int i = 0; i < 70000; ++i) {
    const taccRedOp_t op = make(static_cast<float>(i));
    ASSERT_GE(op, taccNumOps);
    numbers.insert(op);
    ASSERT_EQ(taccRedOpDestroy(op, comm_), taccSuccess);
  }
  EXPECT_GT(numbers.size(), 60u) << "a destroyed number came back too soon";
}

TEST_F(Operators, OnAStreamTheFactorOutlivesTheOperator) {
  taccStream_t stream = nullptr;
  ASSERT_EQ(taccStreamCreate(&stream), taccSuccess);
  world_.hold(0);
  ASSERT_EQ(taccBarrier(comm_, stream), taccSuccess);
  const taccRedOp_t op = make(4.0F);
  ASSERT_EQ(taccAllReduce(in_, out_, 2, taccFloat, op, comm_, stream), taccSuccess);
  ASSERT_EQ(taccRedOpDestroy(op, comm_), taccSuccess);
  world_.letGo(0);
  ASSERT_EQ(taccStreamSynchronize(stream), taccSuccess);
  EXPECT_EQ(out_[0], 8.0F);
  EXPECT_EQ(taccStreamDestroy(stream), taccSuccess);
}

}  // namespace
}  // namespace tacc::test
