#include "compute/gemm_bench.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <stdexcept>

#include "compute/draws.hpp"
#include "compute/openblas_core.hpp"
#include "support/command_line.hpp"
#include "support/output.hpp"
#include "support/turns.hpp"

namespace tacc::bench {
namespace {

/// Squares, the fully connected layers of AlexNet and VGG-16 for 16 images, of ResNet-50 for 64, those of a transformer
/// of width 768 for 128 words, and one head of its attention.
constexpr const char* usualShapes =
    "64x64x64,128x128x128,256x256x256,512x512x512,1024x1024x1024,16x4096x9216,16x4096x4096,16x1000x4096,64x1000x2048,"
    "128x768x768,128x3072x768,128x768x3072,128x128x64,33x77x129";

GemmOptions parseGemm(int argc, char** argv) {
  GemmOptions options;
  CLI::App app("Times products of matrices of tacc, shape by shape, and of other libraries beside it.",
               "tacc_bench gemm");
  std::string peers;
  for (const GemmPeer& peer : gemmPeers()) peers += (peers.empty() ? "" : ", ") + peer.name;
  std::vector<std::string> shapes = CLI::detail::split(usualShapes, ',');
  std::string random, transposed;
  int batch = 1;
  app.add_option("--shapes", shapes, "MxNxK, several with commas (squares and layers of known networks)")
      ->delimiter(',');
  app.add_option("--random", random, "N or N:SEED: N shapes drawn at random, in place of the usual ones");
  app.add_option("--transpose", transposed, "matrices that are stored as their transposes: a, b or ab")
      ->check(CLI::IsMember({"a", "b", "ab"}));
  app.add_option("--batch", batch, "so many products of each shape in a call (1)")->check(tools::isPositive);
  app.add_option("--peer", options.peers, "compare with " + (peers.empty() ? "(none was built in)" : peers))
      ->delimiter(',');
  app.add_option("--threads", options.threads, "threads (1)")->check(tools::isPositive);
  app.add_option("--seconds", options.seconds, "for one shape, all contestants together (0.3)")
      ->check(tools::isPositive);
  app.add_flag("--pack", options.packs, "bring B into the library's order in every run: B is new every time");
  app.add_flag("--cpu-time", options.processorTime,
               "count processor time, for a machine that others use too (one thread)");
  app.add_option("--json", options.jsonFile, "write the results to this file");
  app.add_option("--plot", options.plotFile, "draw the results into this SVG file");
  tools::parseCommandLine(app, "tacc_bench gemm", argc, argv, [&] {
    if (!random.empty()) {
      const DrawnSet set = parseDrawnSet(random);
      options.shapes = drawGemmShapes(set.count, set.seed);
    }
    const bool areNamed = app.count("--shapes") > 0 || random.empty();
    for (const std::string& shape : areNamed ? shapes : std::vector<std::string>())
      options.shapes.push_back(parseGemmShape(shape, batch));
    for (GemmShape& shape : options.shapes) {
      shape.batch = batch;
      shape.transposeA = transposed.starts_with('a');
      shape.transposeB = transposed.ends_with('b');
    }
    if (options.processorTime && options.threads > 1) throw std::invalid_argument("--cpu-time is for one thread");
    for (const std::string& name : options.peers) {
      const auto isNamed = [&](const GemmPeer& peer) { return peer.name == name; };
      if (std::none_of(gemmPeers().begin(), gemmPeers().end(), isNamed)) {
        throw std::invalid_argument(fmt::format("unknown peer \"{}\"; there are: {}", name, peers));
      }
    }
#ifndef TACC_BENCH_OPENMP
    if (options.threads > 1)
      throw std::invalid_argument("--threads needs OpenMP, which was not there when this was built");
#endif
  });
  return options;
}

GemmResult measure(const GemmOptions& options, const GemmProblem& problem) {
  std::vector<std::string> names = {""};
  std::vector<std::unique_ptr<GemmContestant>> contestants;
  contestants.push_back(makeTaccGemm(problem, options.threads));
  for (const GemmPeer& peer : gemmPeers()) {
    if (std::find(options.peers.begin(), options.peers.end(), peer.name) == options.peers.end()) continue;
    names.push_back(peer.name);
    contestants.push_back(peer.make(problem, options.threads));
  }
  std::vector<tools::Timed> timed;
  for (const auto& contestant : contestants) {
    timed.push_back({[&options, run = contestant.get()] {
      if (options.packs) run->pack();
      run->run();
    }});
  }
  tools::timeInTurn(timed, options.seconds, options.processorTime);
  GemmResult result{problem.shape, {}, {}};
  for (std::size_t i = 0; i < contestants.size(); ++i) {
    const GemmTime time{timed[i].seconds, contestants[i]->implementation(),
                        problem.countWrong(contestants[i]->result())};
    (i == 0 ? result.tacc : result.peers[names[i]]) = time;
  }
  return result;
}

}  // namespace

int runGemmBench(int argc, char** argv) {
  GemmReport report;
  report.options = parseGemm(argc, argv);
  const GemmOptions& options = report.options;
  tools::requireWritable(options.jsonFile);
  tools::requireWritable(options.plotFile);
  useVectorsInOpenblas(options.peers);
  const char* isa = taccComputeIsa();
  if (isa == nullptr) throw std::runtime_error(taccGetLastError(nullptr));
  report.isa = isa;
  report.peak = taccMeasurePeak(0.5) * options.threads;
  fmt::print("# {} with {} thread{}: multiply-adds alone reach {:.1f} GFLOP/s\n", report.isa, options.threads,
             options.threads == 1 ? "" : "s", report.peak * 1e-9);
  bool isRight = true;
  for (const GemmShape& shape : options.shapes) {
    report.results.push_back(measure(options, GemmProblem(shape)));
    isRight = isRight && report.results.back().tacc.wrong == 0;
    fmt::print("{}", gemmLine(report, report.results.back()));
    std::fflush(stdout);
  }
  fmt::print("{}", gemmSummary(report));
  if (!options.jsonFile.empty()) tools::writeOutput(options.jsonFile, gemmJson(report));
  if (!options.plotFile.empty()) tools::writeOutput(options.plotFile, gemmPlot(report));
  return isRight ? 0 : 1;
}

}  // namespace tacc::bench
