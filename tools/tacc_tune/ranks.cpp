#include "ranks.hpp"

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <random>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "report.hpp"
#include "support/interrupt.hpp"
#include "support/process.hpp"
#include "support/virtual_hosts.hpp"

namespace tacc::tune {
namespace {

using Clock = std::chrono::steady_clock;
/// A rank whose partner has failed finds that out by itself.
constexpr std::chrono::seconds farewell{10};
constexpr std::chrono::milliseconds pollInterval{20};
constexpr std::size_t shownLogBytes = 2000;
constexpr int port = 29400;  // each virtual host has its own ports

std::string randomSecret() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

/// What a launcher would tell all ranks alike. The secret is nowhere on a command line.
void describeJob(const Options& options, const tools::VirtualHosts* hosts) {
  const std::string ranks = std::to_string(options.ranks);
  ::setenv("WORLD_SIZE", ranks.c_str(), 1);
  ::setenv("TACC_JOB_SECRET", randomSecret().c_str(), 1);
  if (hosts == nullptr) {
    ::setenv("LOCAL_WORLD_SIZE", ranks.c_str(), 1);
    ::unsetenv("TACC_RENDEZVOUS");
    return;
  }
  ::unsetenv("LOCAL_WORLD_SIZE");
  ::setenv("TACC_RENDEZVOUS", fmt::format("10.77.0.{}:{}", hosts->hostsOfRanks().front(), port).c_str(), 1);
}

void runPlaced(const Options& options, const std::string& placement) {
  std::optional<tools::VirtualHosts> hosts;
  if (options.cluster) hosts.emplace(*options.cluster, placement, options.ranks);
  describeJob(options, hosts ? &*hosts : nullptr);
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  const tools::MemoryFile log("tacc_tune_log");
  std::vector<tools::Process> ranks;
  for (int rank = 0; rank < options.ranks; ++rank) {
    std::vector<std::string> words = {"env", fmt::format("RANK={}", rank), program};
    for (std::string& word : options.ofRank()) words.push_back(std::move(word));
    ranks.emplace_back(hosts ? hosts->enter(rank, words) : words, rank == 0 ? nullptr : &log);
  }
  std::optional<Clock::time_point> deadline;  // after the first has failed
  for (std::size_t running = ranks.size(); running > 0; std::this_thread::sleep_for(pollInterval)) {
    tools::throwIfInterrupted();
    running = 0;
    for (tools::Process& rank : ranks) {
      if (rank.isRunning())
        ++running;
      else if (!rank.succeeded() && !deadline)
        deadline = Clock::now() + farewell;
    }
    if (deadline && Clock::now() > *deadline) break;
  }
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    if (!ranks[rank].isRunning() && ranks[rank].succeeded()) continue;
    const std::string output = log.tail(shownLogBytes);
    throw std::runtime_error(fmt::format("rank {} {}{}", rank,
                                         ranks[rank].isRunning() ? "did not end" : "ended with " + ranks[rank].ending(),
                                         output.empty() ? "" : "; the end of what the other ranks wrote:\n" + output));
  }
}

}  // namespace

void runRanks(const Options& options) {
  tools::catchInterrupts();
  if (options.placements.size() == 1) return runPlaced(options, options.placements.front());
  const tools::MemoryFile regrets("tacc_tune_regrets");
  Options each = options;
  each.regrets = fmt::format("/proc/{}/fd/{}", ::getpid(), regrets.descriptor());
  for (const std::string& placement : options.placements) {
    fmt::print("# ranks placed {}\n", placement);
    std::fflush(stdout);
    runPlaced(each, placement);
  }
  std::istringstream lines(regrets.tail(SIZE_MAX));
  const std::vector<double> all{std::istream_iterator<double>(lines), {}};
  fmt::print("{}", summaryOf(all, "all placements"));
}

}  // namespace tacc::tune
