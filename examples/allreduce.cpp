// The smallest tacc program in C++: `allreduce_cpp [RANKS]` runs as that many processes (default 4), which add up their
// ranks.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "tacc/tacc.hpp"

namespace {

/// What one rank does. Whether its sum is right.
bool addUp(int ranks, const taccUniqueId& id, int rank) {
  const taccxx::Communicator comm = taccxx::Communicator::initRank(ranks, id, rank);
  const std::array<float, 2> mine = {static_cast<float>(rank), 1.0f};
  std::array<float, 2> sum = {};
  comm.allReduce(mine, sum);
  std::printf("rank %d of %d: the sum of all ranks is %g\n", comm.rank(), comm.size(), static_cast<double>(sum[0]));
  return sum[1] == static_cast<float>(ranks);
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 4;
  int rank = 0;  // of this process: the first is rank 0 and starts the others
  bool isRight = false;
  try {
    const taccUniqueId id = taccxx::getUniqueId();
    for (int child = 1; child < ranks && rank == 0; ++child) {
      if (::fork() == 0) rank = child;
    }
    isRight = addUp(ranks, id, rank);
  } catch (const taccxx::Error& error) {
    std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
  }
  int status = 0;
  while (::wait(&status) > 0) isRight = isRight && status == 0;
  return isRight ? EXIT_SUCCESS : EXIT_FAILURE;
}
