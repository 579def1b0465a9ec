// Sends and receives, split communicators and registered buffers, among processes and threads.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "fault_team.hpp"
#include "rank_harness.hpp"

namespace tacc::test {
namespace {

std::byte byteOf(int rank, std::size_t i) { return static_cast<std::byte>(rank * 37 + static_cast<int>(i % 251)); }

void fill(std::byte* buffer, std::size_t bytes, int rank) {
  for (std::size_t i = 0; i < bytes; ++i) buffer[i] = byteOf(rank, i);
}
std::size_t countWrong(const std::byte* buffer, std::size_t bytes, int rank) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < bytes; ++i) wrong += buffer[i] == byteOf(rank, i) ? 0 : 1;
  return wrong;
}

/// Private or library memory.
class Buffer {
 public:
  Buffer(std::size_t bytes, bool library) : library_(library) {
    if (library) {
      EXPECT_EQ(taccMemAlloc(&data_, bytes), taccSuccess);
    } else {
      data_ = std::calloc(bytes + 1, 1);
    }
  }
  ~Buffer() {
    if (library_) {
      EXPECT_EQ(taccMemFree(data_), taccSuccess);
    } else {
      std::free(data_);
    }
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  std::byte* data() const { return static_cast<std::byte*>(data_); }

 private:
  bool library_;
  void* data_ = nullptr;
};

/// The members of `comm` are ranks of another communicator: their sum is right.
void expectSum(taccComm_t comm, int mine, int sum) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{100000}}) {
    std::vector<int> values(count, mine);
    expectSuccess(taccAllReduce(values.data(), values.data(), count, taccInt32, taccSum, comm, nullptr), comm);
    EXPECT_EQ(std::count(values.begin(), values.end(), sum), static_cast<std::ptrdiff_t>(count)) << values[0];
  }
}

class Members : public testing::TestWithParam<RankKind> {};

TEST_P(Members, exchangeInARing) {
  constexpr int ranks = 5;
  runRanks(GetParam(), ranks, [](taccComm_t comm, int rank) {
    const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
    for (const bool library : {false, true})
      for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{40000}, std::size_t{3} << 20}) {
        Buffer out(bytes, library), in(bytes, library);
        // Again after a collective has made the memory known to all.
        for (const bool known : {false, true}) {
          if (known) expectSuccess(taccBcast(out.data(), bytes, taccUint8, 0, comm, nullptr), comm);
          fill(out.data(), bytes, rank);
          std::fill_n(in.data(), bytes, std::byte{0xEE});
          EXPECT_EQ(taccGroupStart(), taccSuccess);
          EXPECT_EQ(taccSend(out.data(), bytes, taccUint8, next, comm, nullptr), taccSuccess);
          EXPECT_EQ(taccRecv(in.data(), bytes, taccUint8, previous, comm, nullptr), taccSuccess);
          expectSuccess(taccGroupEnd(), comm);
          EXPECT_EQ(countWrong(in.data(), bytes, previous), 0U) << bytes << " bytes, rank " << rank;
        }
        expectSuccess(taccBarrier(comm, nullptr), comm);
      }
  });
}

TEST_P(Members, sendManyToEachInOrder) {
  constexpr int ranks = 3, messages = 12;
  runRanks(GetParam(), ranks, [](taccComm_t comm, int rank) {
    constexpr std::size_t count = 30001;
    std::vector<std::vector<int>> out, in;
    EXPECT_EQ(taccGroupStart(), taccSuccess);
    for (int m = 0; m < messages; ++m)
      for (int peer = 0; peer < ranks; ++peer) {  // itself, too
        out.emplace_back(count + static_cast<std::size_t>(m), 1000 * rank + 100 * peer + m);
        in.emplace_back(out.back().size(), -1);
        EXPECT_EQ(taccSend(out.back().data(), out.back().size(), taccInt32, peer, comm, nullptr), taccSuccess);
        EXPECT_EQ(taccRecv(in.back().data(), in.back().size(), taccInt32, peer, comm, nullptr), taccSuccess);
      }
    expectSuccess(taccGroupEnd(), comm);
    for (int m = 0; m < messages; ++m)
      for (int peer = 0; peer < ranks; ++peer) {
        const auto& got = in[static_cast<std::size_t>(m * ranks + peer)];
        const int wanted = 1000 * peer + 100 * rank + m;
        EXPECT_EQ(std::count(got.begin(), got.end(), wanted), static_cast<std::ptrdiff_t>(got.size()));
      }
  });
}

TEST_P(Members, sendOutsideOfAGroup) {
  runRanks(GetParam(), 2, [](taccComm_t comm, int rank) {
    std::vector<std::byte> buffer(1 << 20);
    for (int i = 0; i < 20; ++i) {
      if (rank == i % 2) {
        fill(buffer.data(), buffer.size(), i);
        expectSuccess(taccSend(buffer.data(), buffer.size(), taccUint8, 1 - rank, comm, nullptr), comm);
      } else {
        expectSuccess(taccRecv(buffer.data(), buffer.size(), taccUint8, 1 - rank, comm, nullptr), comm);
        EXPECT_EQ(countWrong(buffer.data(), buffer.size(), i), 0U);
      }
    }
  });
}

TEST_P(Members, split) {
  constexpr int ranks = 6;
  runRanks(GetParam(), ranks, [](taccComm_t comm, int rank) {
    // Even and odd ranks, in reverse order; then all but rank 0, in order.
    taccComm_t half = nullptr, most = nullptr;
    expectSuccess(taccCommSplit(comm, rank % 2, -rank, &half, nullptr), comm);
    expectSuccess(taccCommSplit(comm, rank == 0 ? TACC_SPLIT_NOCOLOR : 7, 0, &most, nullptr), comm);
    ASSERT_NE(half, nullptr);
    int count = 0, place = -1;
    EXPECT_EQ(taccCommCount(half, &count), taccSuccess);
    EXPECT_EQ(taccCommUserRank(half, &place), taccSuccess);
    EXPECT_EQ(count, 3);
    EXPECT_EQ(place, (ranks - 1 - rank) / 2);
    expectSum(half, rank, rank % 2 == 0 ? 0 + 2 + 4 : 1 + 3 + 5);
    EXPECT_EQ(most == nullptr, rank == 0);
    if (most != nullptr) {
      EXPECT_EQ(taccCommUserRank(most, &place), taccSuccess);
      EXPECT_EQ(place, rank - 1);
      expectSum(most, rank, 15);
      // A communicator of a communicator of one.
      taccComm_t alone = nullptr;
      expectSuccess(taccCommSplit(most, rank, 0, &alone, nullptr), most);
      ASSERT_NE(alone, nullptr);
      expectSum(alone, rank, rank);
      EXPECT_EQ(taccCommDestroy(alone), taccSuccess);
      EXPECT_EQ(taccCommDestroy(most), taccSuccess);
    }
    expectSum(comm, rank, 15);
    EXPECT_EQ(taccCommDestroy(half), taccSuccess);
  });
}

TEST_P(Members, destroyWhileOthersStillWork) {
  // Whoever has finished its last call leaves at once; the others must not take that for a death.
  for (int repetition = 0; repetition < (isQuick() ? 5 : 40); ++repetition)
    runRanks(GetParam(), 4, [](taccComm_t comm, int rank) {
      std::vector<float> values(1 << 16, 1.0F);
      if (rank == 3) usleep(2000);
      expectSuccess(taccAllReduce(values.data(), values.data(), values.size(), taccFloat32, taccSum, comm, nullptr),
                    comm);
      if (rank == 0) usleep(3000);
      EXPECT_EQ(taccGroupStart(), taccSuccess);
      if (rank != 0) {
        EXPECT_EQ(taccSend(values.data(), 1, taccFloat32, 0, comm, nullptr), taccSuccess);
      }
      float received[4] = {};
      for (int peer = 1; peer < 4 && rank == 0; ++peer)
        EXPECT_EQ(taccRecv(received + peer, 1, taccFloat32, peer, comm, nullptr), taccSuccess);
      expectSuccess(taccGroupEnd(), comm);
      expectSuccess(taccBcast(values.data(), 10, taccFloat32, 0, comm, nullptr), comm);
    });
}

TEST_P(Members, registerBuffers) {
  constexpr int ranks = 3;
  constexpr std::size_t count = 2 << 20;  // floats: 8 MiB
  runRanks(GetParam(), ranks, [](taccComm_t comm, int rank) {
    for (const std::size_t shift : {std::size_t{0}, std::size_t{20}}) {  // bytes off a page's start
      void* raw = std::aligned_alloc(4096, count * sizeof(float) + 4096);
      void* otherRaw = std::aligned_alloc(4096, count * sizeof(float) + 4096);
      auto* in = reinterpret_cast<float*>(static_cast<std::byte*>(raw) + shift);
      auto* out = reinterpret_cast<float*>(static_cast<std::byte*>(otherRaw) + shift);
      for (std::size_t i = 0; i < count; ++i) in[i] = static_cast<float>(rank + static_cast<int>(i % 100));
      std::fill_n(out, count, -1.0F);
      void *inHandle = nullptr, *outHandle = nullptr;
      expectSuccess(taccCommRegister(comm, in, count * sizeof(float), &inHandle), comm);
      expectSuccess(taccCommRegister(comm, out, count * sizeof(float), &outHandle), comm);
      const auto wrong = [&](const float* values, int base, int factor) {
        std::size_t n = 0;
        for (std::size_t i = 0; i < count; ++i)
          n += values[i] == static_cast<float>(base + factor * static_cast<int>(i % 100)) ? 0 : 1;
        return n;
      };
      EXPECT_EQ(wrong(in, rank, 1), 0U) << "by registering";
      for (int repetition = 0; repetition < 2; ++repetition) {
        expectSuccess(taccAllReduce(in, out, count, taccFloat32, taccSum, comm, nullptr), comm);
        EXPECT_EQ(wrong(out, 3, 3), 0U);
        EXPECT_EQ(wrong(in, rank, 1), 0U);
      }
      expectSuccess(taccAllReduce(in, in, count, taccFloat32, taccSum, comm, nullptr), comm);
      // Nobody takes its memory back while another rank may still read it.
      expectSuccess(taccBarrier(comm, nullptr), comm);
      expectSuccess(taccCommDeregister(comm, inHandle), comm);
      expectSuccess(taccCommDeregister(comm, outHandle), comm);
      EXPECT_EQ(wrong(in, 3, 3), 0U) << "after deregistering";
      EXPECT_EQ(wrong(out, 3, 3), 0U) << "after deregistering";
      expectSuccess(taccAllReduce(in, out, count, taccFloat32, taccMax, comm, nullptr), comm);
      EXPECT_EQ(wrong(out, 3, 3), 0U) << "private again";
      std::free(raw);
      std::free(otherRaw);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Kinds, Members, testing::Values(RankKind::processes, RankKind::threads),
                         [](const testing::TestParamInfo<RankKind>& suite) {
                           return suite.param == RankKind::processes ? "processes" : "threads";
                         });

/// Rank 0 sends one thing, rank 1 expects another.
void expectPairMismatch(std::size_t sent, taccDataType_t sentType, std::size_t expected, taccDataType_t expectedType,
                        const std::vector<const char*>& words) {
  Team team(2, [&](const taccUniqueId& id, int rank, Report& report) {
    taccComm_t comm = joinTeam(id, 2, rank, configOf(20, 5));
    if (comm == nullptr) return;
    std::vector<std::byte> buffer(8 << 20);
    const auto call = [&](taccComm_t c, int me) {
      return me == 0 ? taccSend(buffer.data(), sent, sentType, 1, c, nullptr)
                     : taccRecv(buffer.data(), expected, expectedType, 0, c, nullptr);
    };
    reportCall(comm, rank, call, report);
  });
  team.join();
  EXPECT_EQ(team.report(1).result, taccInvalidUsage) << team.report(1).message;
  EXPECT_EQ(team.report(0).result, taccRemoteError) << team.report(0).message;
  for (const char* word : words)
    EXPECT_NE(std::string(team.report(1).message).find(word), std::string::npos) << team.report(1).message;
}

TEST(Pairs, mismatchIsAnError) {
  expectPairMismatch(5, taccFloat32, 6, taccFloat32, {"5 float", "6 float"});
  expectPairMismatch(6, taccInt32, 6, taccFloat32, {"6 int32", "6 float"});
  expectPairMismatch(1 << 20, taccFloat32, (1 << 20) - 1, taccFloat32, {"1048576 float", "1048575 float"});
  expectPairMismatch(0, taccFloat32, 1, taccFloat32, {"0 float", "1 float"});
}

TEST(Pairs, noTimeoutMeansForEver) {
  // Library memory goes round among the ranks at its first use; that, too, may take as long as it takes.
  Team team(2, [](const taccUniqueId& id, int rank, Report&) {
    taccComm_t comm = joinTeam(id, 2, rank, configOf(20, 0));
    if (comm == nullptr) return;
    const Buffer buffer(1 << 20, true);
    if (rank == 1) usleep(100'000);
    expectSuccess(taccBcast(buffer.data(), 1 << 20, taccUint8, 0, comm, nullptr), comm);
    expectSuccess(taccAllReduce(buffer.data(), buffer.data(), 1 << 18, taccFloat32, taccSum, comm, nullptr), comm);
    EXPECT_EQ(taccCommDestroy(comm), taccSuccess);
  });
  team.join();
}

}  // namespace
}  // namespace tacc::test
