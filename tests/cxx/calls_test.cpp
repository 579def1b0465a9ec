// Every call of the C++ interface on three ranks, and what it says about buffers that do not fit.
#include <array>
#include <numeric>
#include <span>

#include "cxx/ranks.hpp"

namespace taccxx::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int ranks = 3;

TEST(CxxCalls, AllReduce) {
  onRanks(ranks, [](Communicator& comm) {
    const std::vector<int> mine(1000, comm.rank() + 1);
    std::vector<int> sum(1000);
    comm.allReduce(mine, sum);
    EXPECT_THAT(sum, ::testing::Each(6));
    std::array<double, 2> both = {double(comm.rank()), 10.0};
    comm.allReduce(both, taccMax);
    EXPECT_THAT(both, ElementsAre(2.0, 10.0));
    comm.allReduce(std::span(sum).first(500), std::span(sum).last(500), taccAvg);
    EXPECT_EQ(sum[999], 6);
    EXPECT_FALSE(comm.lastAlgorithm().empty());
  });
}

TEST(CxxCalls, BroadcastAndReduce) {
  onRanks(ranks, [](Communicator& comm) {
    std::vector<float> values(10, comm.rank() == 1 ? 7.0f : 0.0f);
    comm.broadcast(values, 1);
    EXPECT_THAT(values, ::testing::Each(7.0f));
    const std::vector<float> source(comm.rank() == 2 ? 10 : 0, 8.0f);
    comm.broadcast(source, values, 2);
    EXPECT_THAT(values, ::testing::Each(8.0f));
    std::vector<float> product(comm.rank() == 0 ? 10 : 0);
    comm.reduce(values, product, 0, taccProd);
    EXPECT_THAT(product, ::testing::Each(512.0f));
  });
}

TEST(CxxCalls, BlocksOfAllRanks) {
  onRanks(ranks, [](Communicator& comm) {
    const int rank = comm.rank();
    const std::array<int, 2> mine = {rank, 10 * rank};
    std::vector<int> all(6);
    comm.allGather(mine, all);
    EXPECT_THAT(all, ElementsAre(0, 0, 1, 10, 2, 20));
    std::array<int, 2> sums = {};
    comm.reduceScatter(all, sums);
    EXPECT_THAT(sums, ElementsAre(3 * rank, 30 * rank));
    std::vector<int> turned(6);
    for (int& value : all) value = 100 * rank + value;
    comm.allToAll(all, turned);
    EXPECT_THAT(turned, ElementsAre(rank, 10 * rank, 100 + rank, 100 + 10 * rank, 200 + rank, 200 + 10 * rank));
    std::vector<int> gathered(rank == 2 ? 6 : 0);
    comm.gather(mine, gathered, 2);
    if (rank == 2) {
      EXPECT_THAT(gathered, ElementsAre(0, 0, 1, 10, 2, 20));
    }
    std::array<int, 2> scattered = {};
    comm.scatter(gathered, scattered, 2);
    EXPECT_EQ(scattered, mine);
    comm.barrier();
  });
}

TEST(CxxCalls, BlocksOfUnequalLengths) {
  onRanks(ranks, [](Communicator& comm) {
    const auto rank = static_cast<std::size_t>(comm.rank());
    const std::array<std::size_t, 3> counts = {1, 0, 2}, places = {3, 0, 1};
    const std::vector<int> mine(counts[rank], comm.rank() + 1);
    std::vector<int> all(3), spread(4, -1);
    comm.allGatherV(mine, all, {counts});
    EXPECT_THAT(all, ElementsAre(1, 3, 3));
    comm.allGatherV(mine, spread, {counts, places});
    EXPECT_THAT(spread, ElementsAre(-1, 3, 3, 1));
    std::vector<int> sums(counts[rank]);
    comm.reduceScatterV(all, sums, {counts});
    EXPECT_THAT(sums, ::testing::Each(counts[rank] == 1 ? 3 : 9));
    std::vector<int> gathered(3);
    comm.gatherV(mine, gathered, {counts}, 1);
    if (rank == 1) {
      EXPECT_THAT(gathered, ElementsAre(1, 3, 3));
    }
    comm.scatterV(gathered, {counts}, sums, 1);
    EXPECT_EQ(sums, mine);
    // Each gives as many as it has itself to everybody.
    const std::array<std::size_t, 3> given = {counts[rank], counts[rank], counts[rank]};
    const std::vector<int> copies(3 * counts[rank], comm.rank() + 1);
    comm.allToAllV(copies, {given}, all, {counts});
    EXPECT_THAT(all, ElementsAre(1, 3, 3));
    std::vector<int> prefix(1, comm.rank() + 1);
    comm.scan(prefix, prefix);
    EXPECT_EQ(prefix[0], (comm.rank() + 1) * (comm.rank() + 2) / 2);
    std::vector<int> before(1, -1);
    comm.exscan(prefix, before, taccMax);
    EXPECT_EQ(before[0], comm.rank() == 0 ? -1 : comm.rank() * (comm.rank() + 1) / 2);
    std::vector<int> few(1);
    EXPECT_THROW(comm.allGatherV(mine, few, {counts}), Error);
  });
}

TEST(CxxCalls, SendAndReceiveAroundARing) {
  onRanks(ranks, [](Communicator& comm) {
    const std::vector<double> mine(5000, comm.rank());
    std::vector<double> left(5000);
    Group group;
    comm.send(mine, (comm.rank() + 1) % ranks);
    comm.recv(left, (comm.rank() + ranks - 1) % ranks);
    group.end();
    EXPECT_THAT(left, ::testing::Each((comm.rank() + ranks - 1) % ranks));
  });
}

TEST(CxxCalls, OnAStream) {
  onRanks(ranks, [](Communicator& comm) {
    Stream first;
    Stream stream = std::move(first);
    EXPECT_EQ(first.get(), nullptr);
    std::vector<float> values(100'000, 1.0f);
    for (int round = 0; round < 3; ++round) comm.allReduce(values, taccSum, stream);
    stream.synchronize();
    EXPECT_TRUE(stream.isDone());
    EXPECT_THAT(values, ::testing::Each(27.0f));
  });
}

TEST(CxxCalls, BucketOfManyTensors) {
  onRanks(ranks, [](Communicator& comm) {
    Stream stream;
    std::vector<std::vector<float>> tensors;
    for (std::size_t i = 0; i < 40; ++i) tensors.emplace_back(i, static_cast<float>(comm.rank()));
    Bucket made(comm, stream, 1024);
    Bucket bucket = std::move(made);
    EXPECT_EQ(bucket.bytes(), 1024u);
    for (auto& tensor : tensors) bucket.add(tensor);
    bucket.flush();
    stream.synchronize();
    for (const auto& tensor : tensors) EXPECT_THAT(tensor, ::testing::Each(3.0f));
  });
}

TEST(CxxCalls, PreMulSumTakesEachRanksFactor) {
  onRanks(ranks, [](Communicator& comm) {
    PreMulSum made(comm, static_cast<float>(comm.rank()));
    const PreMulSum op = std::move(made);
    std::vector<float> values(10, 2.0f);
    comm.allReduce(values, op);
    EXPECT_THAT(values, ::testing::Each(6.0f));
  });
}

TEST(CxxCalls, LibraryMemoryAndRegistration) {
  onRanks(ranks, [](Communicator& comm) {
    Memory<int> made(3000);
    EXPECT_THAT(made, ::testing::Each(0));
    Memory<int> memory = std::move(made);
    EXPECT_EQ(made.size(), 0u);
    std::iota(memory.begin(), memory.end(), comm.rank());
    comm.allReduce(memory);
    for (std::size_t i = 0; i < memory.size(); ++i) ASSERT_EQ(memory[i], 3 * static_cast<int>(i) + 3);
    std::vector<int> vector(20'000, 1);
    {
      Registration registered(comm, vector);
      const Registration registration = std::move(registered);
      comm.allReduce(vector);
    }
    EXPECT_THAT(vector, ::testing::Each(3));
    EXPECT_EQ(Memory<float>(0).size(), 0u);
    EXPECT_THAT(errorOf([] { Memory<double>(~std::size_t{0}); }), HasSubstr("invalid argument"));
  });
}

TEST(CxxCalls, BuffersThatDoNotFitAreNamed) {
  onRanks(ranks, [](Communicator& comm) {
    std::vector<int> three(3);
    std::vector<int> four(4);
    const auto refused = [](const char* call, const char* buffer, int found, int wanted) {
      const std::string text = std::string("invalid argument: taccxx::Communicator::") + call + ": `" + buffer +
                               "` has " + std::to_string(found) + " elements; it must have " + std::to_string(wanted);
      return ::testing::Eq(text);
    };
    const int me = comm.rank();
    EXPECT_THAT(errorOf([&] { comm.allReduce(three, four); }), refused("allReduce", "receive", 4, 3));
    EXPECT_THAT(errorOf([&] { comm.broadcast(three, four, me); }), refused("broadcast", "send", 3, 4));
    EXPECT_THAT(errorOf([&] { comm.reduce(three, four, me); }), refused("reduce", "receive", 4, 3));
    EXPECT_THAT(errorOf([&] { comm.allGather(three, four); }), refused("allGather", "receive", 4, 9));
    EXPECT_THAT(errorOf([&] { comm.reduceScatter(three, four); }), refused("reduceScatter", "send", 3, 12));
    EXPECT_THAT(errorOf([&] { comm.allToAll(four, four); }), refused("allToAll", "send", 4, 3));
    EXPECT_THAT(errorOf([&] { comm.allToAll(three, four); }), refused("allToAll", "receive", 4, 3));
    EXPECT_THAT(errorOf([&] { comm.gather(three, four, me); }), refused("gather", "receive", 4, 9));
    EXPECT_THAT(errorOf([&] { comm.scatter(three, four, me); }), refused("scatter", "send", 3, 12));
    comm.allReduce(three);  // nothing of all that has harmed it
  });
}

TEST(CxxCalls, RequestsAndEvents) {
  onRanks(ranks, [](Communicator& comm) {
    const Stream first, second;
    std::vector<int> values(1000, 1);
    comm.allReduce(values, taccSum, first);
    Request one(first);
    const Event added(first);
    added.holdBack(second);
    comm.allReduce(values, taccSum, second);
    Request other(second);
    Request moved = std::move(one);
    while (!moved.isDone()) EXPECT_FALSE(other.isDone() && !added.isReached());
    added.synchronize();
    EXPECT_TRUE(added.isReached());
    while (!other.waitFor(std::chrono::milliseconds(1))) continue;
    other.wait();
    EXPECT_EQ(values, std::vector<int>(1000, ranks * ranks));
    one = std::move(moved);
    EXPECT_TRUE(one.isDone());
  });
  const Stream unused;
  EXPECT_THAT(errorOf([&] { Request none(unused); }),
              HasSubstr("invalid usage: taccStreamRequest: the stream has been given no work yet"));
}

TEST(CxxCalls, AnErrorHasItsResultAndSentence) {
  onRanks(ranks, [](Communicator& comm) {
    std::vector<int> values(3);
    EXPECT_THAT(errorOf([&] { comm.broadcast(values, 5); }),
                AllOf(HasSubstr("invalid argument: taccBcast on rank"), HasSubstr("root 5")));
  });
  EXPECT_EQ(errorOf([] { check(taccSuccess); }), "");
}

}  // namespace
}  // namespace taccxx::test
