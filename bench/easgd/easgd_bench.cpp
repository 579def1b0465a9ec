#include "easgd/easgd_bench.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "coordinator/launch.hpp"
#include "easgd/training_rank.hpp"
#include "support/command_line.hpp"
#include "support/output.hpp"
#include "support/sizes.hpp"

namespace tacc::bench {
namespace {

std::vector<taccEasgdMode_t> allModes() {
  std::vector<taccEasgdMode_t> modes;
  for (int mode = 0; mode < taccEasgdNumModes; ++mode) modes.push_back(static_cast<taccEasgdMode_t>(mode));
  return modes;
}

taccEasgdMode_t modeOf(const std::string& name) {
  std::string known;
  for (const taccEasgdMode_t mode : allModes()) {
    if (name == taccEasgdModeName(mode)) return mode;
    known += fmt::format(" {}", taccEasgdModeName(mode));
  }
  throw std::invalid_argument(fmt::format("there is no mode {}; modes are: all{}", name, known));
}

EasgdOptions parseEasgd(int argc, char** argv) {
  EasgdOptions options;
  std::vector<std::string> modes = {"all"};
  std::string size = "100M";
  CLI::App app("Times exchanges and steps of EASGD, beside the allreduce of gradients that they replace.",
               "tacc_bench easgd");
  app.add_option("--mode", modes, "several with commas (all)")->delimiter(',');
  app.add_option("--tau", options.periods, "every tau-th step exchanges; several with commas (1,4,8,16)")
      ->delimiter(',')
      ->check(tools::isPositive);
  app.add_option("--size", size, "bytes of weights (100M)");
  app.add_option("-n,--ranks", options.ranks, "processes on this host (2)")->check(CLI::Range(1, 1024));
  app.add_option("--repetitions", options.repetitions, "of each measurement, after one that does not count (5)")
      ->check(tools::isPositive);
  app.add_option("--compute", options.computeSeconds,
                 "seconds that a step computes elsewhere, as on an accelerator (0)")
      ->check(tools::isNotNegative);
  app.add_option("--slow", options.slowFactor, "the last rank computes so many times longer (1)")
      ->check(CLI::Range(1.0, 1000.0));
  app.add_flag("--in-turn", options.inTurn,
               "of original: ranks also compute one after the other, as in the paper's listing");
  app.add_option("--momentum", options.momentum, "(0)")->check(CLI::Range(0.0, 0.999));
  std::string servers = "rank0", wire = "float32";
  app.add_option("--wire", wire, "sync2, sync3, hierarchical: what is sent for each weight (float32)")
      ->check(CLI::IsMember({"float32", "bfloat16", "float16"}));
  app.add_option("--servers", servers,
                 "of async and hogwild: rank0 has the center, or the first rank of every host has a slice (rank0)")
      ->check(CLI::IsMember({"rank0", "host"}));
  app.add_option("--peer", options.peers,
                 "also measure the allreduce of other libraries, in turn with ours; several with commas")
      ->delimiter(',')
      ->check(CLI::IsMember(peerNames()));
  app.add_flag("--private-memory", options.privateMemory, "the program's own memory instead of taccMemAlloc's");
  app.add_flag("--launched", options.launched, "this is one rank of many that a launcher has started");
  app.add_option("--json", options.jsonFile, "write the results to this file");
  tools::parseCommandLine(app, "tacc_bench easgd", argc, argv, [&] {
    options.bytes = tools::parseSize(size);
    options.wire = wire == "bfloat16"  ? taccEasgdWireBfloat16
                   : wire == "float16" ? taccEasgdWireFloat16
                                       : taccEasgdWire32;
    options.servers = servers == "host" ? taccEasgdServerPerHost : taccEasgdServerRank0;
    if (options.launched && !options.peers.empty())
      throw std::invalid_argument(
          "--peer starts ranks of its own, and --launched says that a launcher has started them: tacc_bench allreduce "
          "--peer measures there");
    for (const std::string& name : modes) {
      if (name == "all")
        options.modes = allModes();
      else
        options.modes.push_back(modeOf(name));
    }
  });
  return options;
}

void printPeers(const std::vector<PeerAllReduce>& peers) {
  for (const PeerAllReduce& one : peers)
    fmt::print("{:<48}{:10.2f}  {:5.2f} x the {:.2f} of tacc beside it\n",
               fmt::format("allreduce of gradients by {}", one.name), one.peer, one.peer / one.tacc, one.tacc);
}

void printBaselines(const EasgdOptions& options, int ranks, const EasgdBaselines& base,
                    const std::vector<PeerAllReduce>& peers) {
  fmt::print("# {} of weights, {} ranks, {} memory; milliseconds, medians of {}\n", tools::formatSize(options.bytes),
             ranks, options.privateMemory ? "private" : "library", options.repetitions);
  fmt::print("allreduce of gradients                          {:10.2f}\n", base.allReduce);
  printPeers(peers);
  fmt::print("  and SGD in a loop behind it                   {:10.2f}\n", base.separately);
  fmt::print("taccAllReduceUpdate (both in one pass)          {:10.2f}  {:5.2f} x the two\n", base.fused,
             base.separately / base.fused);
  fmt::print("allreduce of weights, EASGD in loops behind it  {:10.2f}\n\n", base.exchangeSeparately);
  if (options.slowFactor > 1)
    fmt::print("the last rank computes {} times longer; others: a step of those\n", options.slowFactor);
  if (options.inTurn) fmt::print("original: ranks compute one after the other\n");
  fmt::print("{:20} {:>5} {:>12} {:>13} {:>8} {:>13} {:>12} {:>8} {:>8} {:>10}\n", "mode", "tau", "exchange",
             "/ allreduce", "/ bound", "loops / it", "a step", "waits", "hidden", "others");
  std::fflush(stdout);
}

void printRow(const EasgdBaselines& base, const EasgdResult& row) {
  fmt::print(
      "{:20} {:5} {:12.2f} {:13.2f} {:>8} {:13.2f} {:12.2f} {:7.1f}% {:7.1f}% {:10.2f}\n", row.mode, row.period,
      row.exchange, row.exchange / row.allReduce, row.bound > 0 ? fmt::format("{:.2f}", row.exchange / row.bound) : "-",
      base.exchangeSeparately / row.exchange, row.step, 100 * row.waitShare, 100 * row.hiddenShare, row.othersStep);
  std::fflush(stdout);
}

std::string json(const EasgdOptions& options, int ranks, const EasgdBaselines& base,
                 const std::vector<PeerAllReduce>& peers, const std::vector<EasgdResult>& rows) {
  nlohmann::ordered_json all = {{"bytes", options.bytes},
                                {"ranks", ranks},
                                {"memory", options.privateMemory ? "private" : "library"},
                                {"compute_seconds", options.computeSeconds},
                                {"slow_factor", options.slowFactor},
                                {"in_turn", options.inTurn},
                                {"allreduce_ms", base.allReduce},
                                {"allreduce_and_loop_ms", base.separately},
                                {"allreduce_update_ms", base.fused},
                                {"exchange_in_loops_ms", base.exchangeSeparately},
                                {"peers", nlohmann::ordered_json::array()},
                                {"modes", nlohmann::ordered_json::array()}};
  for (const PeerAllReduce& one : peers)
    all["peers"].push_back({{"name", one.name}, {"allreduce_ms", one.peer}, {"tacc_allreduce_ms", one.tacc}});
  for (const EasgdResult& row : rows)
    all["modes"].push_back({{"mode", row.mode},
                            {"tau", row.period},
                            {"exchange_ms", row.exchange},
                            {"allreduce_ms", row.allReduce},
                            {"bound_ms", row.bound},
                            {"step_ms", row.step},
                            {"others_step_ms", row.othersStep},
                            {"wait_share", row.waitShare},
                            {"hidden_share", row.hiddenShare}});
  return all.dump(2) + '\n';
}

/// On every rank; rank 0 prints.
void measureAll(taccComm_t comm, const EasgdOptions& options, const std::vector<PeerAllReduce>& peers) {
  int rank = 0, ranks = 0;
  check(taccCommUserRank(comm, &rank));
  check(taccCommCount(comm, &ranks));
  TrainingRank training(comm, options);
  const EasgdBaselines base = training.measureBaselines();
  if (rank == 0) printBaselines(options, ranks, base, peers);
  std::vector<EasgdResult> rows;
  for (const taccEasgdMode_t mode : options.modes)
    for (const int period : options.periods) {
      rows.push_back(training.measure(mode, period));
      if (rank == 0) printRow(base, rows.back());
    }
  if (rank == 0 && !options.jsonFile.empty())
    tools::writeOutput(options.jsonFile, json(options, ranks, base, peers, rows));
}

/// This process is rank 0, and the others its children.
int runForked(const EasgdOptions& options) {
  tools::requireWritable(options.jsonFile);
  const std::vector<PeerAllReduce> peers = measurePeers(options);
  taccUniqueId id;
  check(taccGetUniqueId(&id));
  int rank = 0;
  std::vector<pid_t> children;
  for (int other = 1; other < options.ranks && rank == 0; ++other) {
    const pid_t child = ::fork();
    if (child < 0) throw std::runtime_error("cannot start a process");
    if (child == 0)
      rank = other;
    else
      children.push_back(child);
  }
  taccComm_t comm = nullptr;
  check(taccCommInitRank(&comm, options.ranks, id, rank));
  measureAll(comm, options, peers);
  check(taccCommDestroy(comm));
  int failures = 0;
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    failures += status == 0 ? 0 : 1;
  }
  return failures == 0 ? 0 : 1;
}

}  // namespace

int runEasgdBench(int argc, char** argv) {
  const EasgdOptions options = parseEasgd(argc, argv);
  if (!options.launched) return runForked(options);
  taccComm_t comm = nullptr;
  check(taccCommInitEnv(&comm, nullptr));
  int rank = 0;
  check(taccCommUserRank(comm, &rank));
  if (rank == 0) tools::requireWritable(options.jsonFile);  // the others miss a rank that ends here
  measureAll(comm, options, {});
  check(taccCommDestroy(comm));
  return 0;
}

}  // namespace tacc::bench
