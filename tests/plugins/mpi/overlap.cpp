// How much of a nonblocking allreduce a program hides behind its own work; to be run by hand:
//   program overlap mpi|tacc BYTES
#include <algorithm>
#include <cstdio>
#include <functional>

#include "cases.hpp"

namespace tacc::test {
namespace {

/// Work that needs no memory, and no call. The number keeps it from being left out.
double compute(long units) {
  double number = 1;
  for (long unit = 0; unit < units; ++unit)
    for (int i = 0; i < 1000; ++i) number = number * 0.999999 + 1e-6;
  return number;
}

/// Seconds of the slowest rank, the median of some runs.
double timeOf(const std::function<void()>& body) {
  std::vector<double> times;
  for (int run = 0; run < 7; ++run) {
    PMPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    body();
    double mine = MPI_Wtime() - start, slowest = 0;
    PMPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    times.push_back(slowest);
  }
  std::ranges::sort(times);
  return times[times.size() / 2];
}

}  // namespace

void measureOverlap(unsigned bytes) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Barrier(MPI_COMM_WORLD);
  std::vector<float> in(bytes / sizeof(float), 1), out(in.size());
  const auto count = static_cast<int>(in.size());
  MPI_Request request = MPI_REQUEST_NULL;
  const auto begin = [&] {
    MPI_Iallreduce(in.data(), out.data(), count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request);
  };
  const auto end = [&] { MPI_Wait(&request, MPI_STATUS_IGNORE); };
  begin();
  end();
  const double blocking =
      timeOf([&] { MPI_Allreduce(in.data(), out.data(), count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); });
  const double alone = timeOf([&] {
    begin();
    end();
  });
  double kept = 0;
  constexpr long tried = 2000;
  const double each = timeOf([&] { kept += compute(tried); }) / tried;
  const long units = std::max(1L, static_cast<long>(alone / each));
  const double work = timeOf([&] { kept += compute(units); });
  const double both = timeOf([&] {
    begin();
    kept += compute(units);
    end();
  });
  if (rank == 0)
    std::printf(
        "%u B: MPI_Allreduce %.3f ms, MPI_Iallreduce and MPI_Wait %.3f ms, work %.3f ms, both %.3f ms: %.0f %% "
        "hidden%s\n",
        bytes, 1e3 * blocking, 1e3 * alone, 1e3 * work, 1e3 * both, 100 * (alone + work - both) / std::min(alone, work),
        kept < 0 ? "!" : "");
}

}  // namespace tacc::test
