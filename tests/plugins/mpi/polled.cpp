// Who gives the core away: a program that asks again and again whether a collective is done lets the thread that does
// it have the core, and MPI does not give it away where tacc waits.
#include <dlfcn.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "cases.hpp"
#include "corners.hpp"

namespace {
thread_local int yields = 0, yieldsOfOpenMpi = 0;
}

/// In place of the C library's, for all of the process.
extern "C" __attribute__((visibility("default"))) int sched_yield() noexcept {
  ++yields;
  Dl_info caller{};
  // The function of libopen-pal that calls it jumps here, so it is libmpi that this returns to.
  if (dladdr(__builtin_return_address(0), &caller) != 0 && caller.dli_fname != nullptr &&
      std::string_view(caller.dli_fname).find("/libmpi.so") != std::string_view::npos)
    ++yieldsOfOpenMpi;
  return static_cast<int>(syscall(SYS_sched_yield));
}

namespace tacc::test {
namespace {

/// Rank 1 comes late. Meanwhile tacc waits, and asks MPI now and then for its messages.
void waitForLateRank() {
  const int rank = rankIn(MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  yieldsOfOpenMpi = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  if (yieldsOfOpenMpi > 0)
    complain("Open MPI gives the core away " + std::to_string(yieldsOfOpenMpi) + " times while tacc waits");
}

}  // namespace

void pollCollective() {
  waitForLateRank();
  const int rank = rankIn(MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  std::vector<int> in(1 << 16, 1), out(in.size());
  // Rank 1 does not come before rank 0 has asked in vain.
  if (rank == 1) PMPI_Recv(nullptr, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallreduce(in.data(), out.data(), static_cast<int>(in.size()), MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
  int flag = 0, done = 0, index = 0;
  if (rank == 0) {
    const auto expectYield = [&](const char* what) {
      if (flag != 0 || done > 0) complain(std::string(what) + " completes what cannot be done");
      if (std::exchange(yields, 0) == 0) complain(std::string(what) + " in vain keeps the core");
    };
    yields = 0;
    MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    expectYield("MPI_Test");
    MPI_Testall(1, &request, &flag, MPI_STATUSES_IGNORE);
    expectYield("MPI_Testall");
    MPI_Testany(1, &request, &index, &flag, MPI_STATUS_IGNORE);
    expectYield("MPI_Testany");
    MPI_Testsome(1, &request, &done, &index, MPI_STATUSES_IGNORE);
    expectYield("MPI_Testsome");
    PMPI_Send(nullptr, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
  }
  while (flag == 0) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
  if (out.front() != ranksIn(MPI_COMM_WORLD)) complain("MPI_Iallreduce gives another sum");
}

}  // namespace tacc::test
