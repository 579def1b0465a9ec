// The time of every single call of an allreduce, and the algorithm that ran it: what happens while a network changes.
//
//   cluster run --cluster 2,4,200,200 -- build/bench/call_times --size 8M --calls 100 --at "30:tools/cluster limit
//   leaf1 50"
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "tacc/tacc.h"

namespace {

void check(taccResult_t result) {
  if (result != taccSuccess) throw std::runtime_error(taccGetLastError(nullptr));
}

/// A command that rank 0 runs before a call, while the others wait.
struct Change {
  int call = -1;
  std::string command;
};

Change parseChange(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) throw std::runtime_error(fmt::format("\"{}\" is not CALL:COMMAND", text));
  return {std::stoi(text.substr(0, colon)), text.substr(colon + 1)};
}

struct Options {
  std::size_t bytes = 1 << 20;
  int calls = 100;
  std::vector<Change> changes;
  bool explain = false;
};

double seconds(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - since).count();
}

/// True if all sums were right.
bool run(const Options& options) {
  taccComm_t comm;
  int rank = 0, ranks = 0;
  check(taccCommInitEnv(&comm, nullptr));
  check(taccCommUserRank(comm, &rank));
  check(taccCommCount(comm, &ranks));
  const std::size_t count = options.bytes / sizeof(float);
  std::vector<float> in(count), out(count);
  for (std::size_t i = 0; i < count; ++i) in[i] = static_cast<float>((i + static_cast<std::size_t>(rank)) % 7);
  bool right = true;
  for (int call = 1; call <= options.calls; ++call) {
    if (rank == 0)
      for (const Change& change : options.changes) {
        if (change.call != call) continue;
        fmt::print("# {}\n", change.command);
        if (std::system(change.command.c_str()) != 0)
          throw std::runtime_error(fmt::format("\"{}\" failed", change.command));
      }
    check(taccBarrier(comm, nullptr));
    const auto start = std::chrono::steady_clock::now();
    check(taccAllReduce(in.data(), out.data(), count, taccFloat, taccSum, comm, nullptr));
    double took = seconds(start);
    const std::string algorithm = taccCommLastAlgorithm(comm);
    check(taccAllReduce(&took, &took, 1, taccDouble, taccMax, comm, nullptr));
    for (std::size_t i = 0; i < count; i += 997) {
      float sum = 0;
      for (int r = 0; r < ranks; ++r) sum += static_cast<float>((i + static_cast<std::size_t>(r)) % 7);
      right = right && out[i] == sum;
    }
    if (rank == 0) fmt::print("{:5} {:10.3f} ms  {}\n", call, took * 1e3, algorithm);
    std::fflush(stdout);
  }
  if (rank == 0 && options.explain) fmt::print("{}", taccExplain(comm, "allreduce", options.bytes));
  check(taccCommDestroy(comm));
  return right;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  std::vector<std::string> changes;
  CLI::App app("Times every call of an allreduce. Started once a rank, by tools/cluster run or any launcher.");
  app.add_option("--size", options.bytes, "bytes of a call")->transform(CLI::AsSizeValue(false));
  app.add_option("--calls", options.calls, "how many");
  app.add_option("--at", changes, "CALL:COMMAND, which rank 0 runs before that call; may be given again");
  app.add_flag("--explain", options.explain, "print taccExplain at the end");
  CLI11_PARSE(app, argc, argv);
  try {
    for (const std::string& change : changes) options.changes.push_back(parseChange(change));
    if (run(options)) return 0;
    std::fprintf(stderr, "call_times: wrong sums\n");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "call_times: %s\n", error.what());
  }
  return 1;
}
