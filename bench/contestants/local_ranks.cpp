#include "contestants/local_ranks.hpp"

#include <atomic>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "contestants/bound_contestant.hpp"
#include "contestants/tacc_contestant.hpp"
#include "support/process.hpp"
#include "worker/worker.hpp"

namespace tacc::bench {
namespace {

/// `areJoining`: each of them joins by itself.
int runThreads(const std::string& address, int ranks, TaccSettings settings, bool areJoining) {
  settings.isThread = true;
  std::vector<taccComm_t> comms(static_cast<size_t>(ranks));
  if (!areJoining && taccCommInitAll(comms.data(), ranks, nullptr) != taccSuccess)
    throw std::runtime_error(taccGetLastError(nullptr));
  std::atomic<int> status = 0;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      const auto contestant =
          areJoining ? std::make_unique<TaccContestant>(rank, ranks, settings)
                     : std::make_unique<TaccContestant>(comms[static_cast<size_t>(rank)], rank, ranks, settings);
      if (serveCoordinator(*contestant, address) != 0) status = 1;
    });
  for (std::thread& thread : threads) thread.join();
  return status;
}

}  // namespace

int runLocalRanks(int argc, char** argv) {
  tools::dieWithParent();
  const std::vector<std::string> words(argv, argv + argc);
  try {
    const std::string& kind = words.at(0);
    const std::string& address = words.at(1);
    const int rank = std::stoi(words.at(2));
    const int ranks = std::stoi(words.at(3));
    if (kind == "bound") {
      BoundContestant contestant(rank, ranks, std::stoi(words.at(4)));
      return serveCoordinator(contestant, address);
    }
    TaccSettings settings;
    settings.libraryMemory = words.at(4) == "library";
    settings.algorithm = words.at(5);
    settings.explainTo = words.at(6) == "-" ? "" : words.at(6);
    settings.streams = std::stoi(words.at(7));
    settings.registers = words.at(8) == "registered";
    settings.timeout = std::stod(words.at(9));
    if (kind != "tacc") return runThreads(address, ranks, settings, kind == "joining-threads");
    TaccContestant contestant(rank, ranks, settings);
    return serveCoordinator(contestant, address);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

}  // namespace tacc::bench
