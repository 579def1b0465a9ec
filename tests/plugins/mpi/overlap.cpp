// How much of a nonblocking allreduce a program hides behind its own work; to be run by hand:
//   program overlap mpi|tacc BYTES
#include <algorithm>
#include <cstdio>
#include <ctime>
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

struct Time {
  double seconds;    // of the slowest rank
  double processor;  // seconds that the ranks' threads had a core, the mean of ranks
};

double processorSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

/// The median of some runs.
Time timeOf(const std::function<void()>& body) {
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  std::vector<double> times, processor;
  for (int run = 0; run < 7; ++run) {
    PMPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime(), startOfProcessor = processorSeconds();
    body();
    const double took = MPI_Wtime() - start, used = processorSeconds() - startOfProcessor;
    double slowest = 0, all = 0;
    PMPI_Allreduce(&took, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    PMPI_Allreduce(&used, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    times.push_back(slowest);
    processor.push_back(all / ranks);
  }
  std::ranges::sort(times);
  std::ranges::sort(processor);
  return {times[times.size() / 2], processor[processor.size() / 2]};
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
  const Time blocking =
      timeOf([&] { MPI_Allreduce(in.data(), out.data(), count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); });
  const Time alone = timeOf([&] {
    begin();
    end();
  });
  double kept = 0;
  constexpr long tried = 2000;
  const double each = timeOf([&] { kept += compute(tried); }).seconds / tried;
  const long units = std::max(1L, static_cast<long>(alone.seconds / each));
  const Time work = timeOf([&] { kept += compute(units); });
  const Time both = timeOf([&] {
    begin();
    kept += compute(units);
    end();
  });
  if (rank == 0)
    std::printf(
        "%u B, ms, and of them on a core: MPI_Allreduce %.1f, %.1f; MPI_Iallreduce and MPI_Wait %.1f, %.1f; work %.1f, "
        "%.1f; both %.1f, %.1f: %.0f %% hidden%s\n",
        bytes, 1e3 * blocking.seconds, 1e3 * blocking.processor, 1e3 * alone.seconds, 1e3 * alone.processor,
        1e3 * work.seconds, 1e3 * work.processor, 1e3 * both.seconds, 1e3 * both.processor,
        100 * (alone.seconds + work.seconds - both.seconds) / std::min(alone.seconds, work.seconds),
        kept < 0 ? "!" : "");
}

}  // namespace tacc::test
