// Groups: what runs at their end, and that nothing does when an exception passes.
#include <span>
#include <stdexcept>

#include "cxx/ranks.hpp"

namespace taccxx::test {
namespace {

using ::testing::HasSubstr;

TEST(CxxGroup, RunsAtItsEnd) {
  std::vector<Communicator> comms = Communicator::initAll(3);
  std::vector<int> values = {1, 2, 3};
  Group group;
  for (std::size_t i = 0; i < 3; ++i) comms[i].allReduce(std::span(values).subspan(i, 1));
  EXPECT_EQ(values, (std::vector<int>{1, 2, 3}));
  group.end();
  EXPECT_EQ(values, (std::vector<int>{6, 6, 6}));
  EXPECT_THAT(errorOf([&] { group.end(); }), HasSubstr("invalid usage: taccxx::Group::end: this group has ended"));
}

TEST(CxxGroup, RunsNothingWhenAnExceptionPasses) {
  std::vector<Communicator> comms = Communicator::initAll(2);
  int value = 1;
  // Would wait for the other rank for ever, if it ran.
  EXPECT_THROW(
      {
        Group group;
        comms[0].allReduce(std::span(&value, 1));
        throw std::runtime_error("of the program");
      },
      std::runtime_error);
  EXPECT_EQ(value, 1);
  EXPECT_EQ(comms[0].asyncError(), taccSuccess);
  // The thread is in no group now, and the communicator is as good as before.
  EXPECT_EQ(taccGroupEnd(), taccInvalidUsage);
  int other = 2;
  Group group;
  comms[0].allReduce(std::span(&value, 1));
  comms[1].allReduce(std::span(&other, 1));
  group.end();
  EXPECT_EQ(value, 3);
  EXPECT_EQ(other, 3);
}

TEST(CxxGroup, AroundOneThatWasLeftRunsNothingEither) {
  std::vector<Communicator> comms = Communicator::initAll(1);
  int value = 1;
  Group outer;
  comms[0].allReduce(std::span(&value, 1));
  { Group inner; }
  EXPECT_NE(errorOf([&] { outer.end(); }), "");
}

TEST(CxxGroup, MakesNoCommunicators) {
  std::vector<Communicator> comms = Communicator::initAll(1);
  const taccUniqueId id = getUniqueId();
  for (const bool isSplit : {false, true}) {
    EXPECT_THAT(errorOf([&] {
                  Group group;
                  const Communicator made = isSplit ? comms[0].split(0, 0) : Communicator::initRank(1, id, 0);
                  group.end();
                }),
                HasSubstr("invalid usage: taccxx::Communicator: a communicator cannot be made so in a group"));
  }
  // Nor in one that was opened in C, whose end must not write to what is gone.
  check(taccGroupStart());
  EXPECT_THAT(errorOf([&] { comms[0].split(0, 0); }), HasSubstr("a communicator cannot be made so in a group"));
  EXPECT_EQ(taccGroupEnd(), taccInvalidArgument);
  EXPECT_EQ(comms[0].split(0, 0).size(), 1);
}

TEST(CxxGroup, MayLeaveASplitOut) {
  onRanks(2, [](Communicator& comm) {
    taccComm_t part = nullptr;
    {
      Group group;
      if (comm.rank() == 0) {
        EXPECT_FALSE(comm.split(TACC_SPLIT_NOCOLOR, 0));
      } else {
        check(taccCommSplit(comm, 0, 0, &part, nullptr));
      }
      group.end();
    }
    const Communicator owned(part);
    EXPECT_EQ(owned ? owned.size() : 0, comm.rank());
  });
}

}  // namespace
}  // namespace taccxx::test
