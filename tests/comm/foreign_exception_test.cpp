// Functions of the program that throw what is no exception of C++, as those of other languages do: the call fails on
// all ranks, which go on.
#include <gtest/gtest.h>
#include <unwind.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "fault_team.hpp"

namespace tacc::test {
namespace {

void throwForeign() {
  static _Unwind_Exception exception{};
  exception = {};
  exception.exception_class = 0x5441'4343'5445'5354;  // nobody's
  _Unwind_RaiseException(&exception);
}

/// On the ranks whose context is set; others add.
void throwWhereTold(void* accumulated, const void* next, std::size_t count, taccDataType_t /*type*/, void* context) {
  if (context != nullptr) throwForeign();
  for (std::size_t i = 0; i < count; ++i) static_cast<float*>(accumulated)[i] += static_cast<const float*>(next)[i];
}

class ForeignException : public testing::TestWithParam<std::string> {};

TEST_P(ForeignException, inAReductionFailsTheCallOnAllRanks) {
  constexpr int ranks = 3;
  const bool isAmongHosts = GetParam() == "messages";
  for (const bool isOnStream : {false, true})
    for (const std::size_t count : {std::size_t{1}, std::size_t{100'000}}) {
      Team team(ranks, [&](const taccUniqueId& id, int rank, Report& report) {
        if (isAmongHosts) {
          ::setenv("TACC_SHM", "off", 1);
          ::setenv("TACC_TRANSPORT", "tcp", 1);
        }
        taccComm_t comm = joinTeam(id, ranks, rank, configOf(20, 20));
        ASSERT_NE(comm, nullptr);
        taccRedOp_t op = taccSum;
        taccStream_t stream = nullptr;
        std::vector<float> in(count, 1), out(count);
        ASSERT_EQ(taccRedOpCreateUser(&op, throwWhereTold, &report, 1, comm), taccSuccess);
        ASSERT_EQ(taccStreamCreate(&stream), taccSuccess);
        report.result = taccAllReduce(in.data(), out.data(), count, taccFloat, op, comm, isOnStream ? stream : nullptr);
        if (isOnStream) report.result = taccStreamSynchronize(stream);
        report.setMessage(taccGetLastError(comm));
        report.later = taccBarrier(comm, nullptr);
        EXPECT_EQ(taccStreamDestroy(stream), taccSuccess);
        EXPECT_EQ(taccCommAbort(comm), taccSuccess);
      });
      team.join();
      int throwing = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const Report& report = team.report(rank);
        throwing += report.result == taccInternalError ? 1 : 0;
        EXPECT_NE(report.later, taccSuccess) << "rank " << rank;
        if (report.result != taccSuccess) {
          EXPECT_NE(std::string(report.message).find("no exception of C++"), std::string::npos)
              << "rank " << rank << ": " << report.message;
        }
      }
      EXPECT_GT(throwing, 0);
    }
}

INSTANTIATE_TEST_SUITE_P(Ways, ForeignException, testing::Values("memory", "messages"),
                         [](const auto& suite) { return suite.param; });

}  // namespace
}  // namespace tacc::test
