#include "compute/conv_bench.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <stdexcept>

#include "compute/conv_chain.hpp"
#include "compute/drawn_layers.hpp"
#include "compute/openblas_core.hpp"
#include "support/command_line.hpp"
#include "support/output.hpp"
#include "support/turns.hpp"

namespace tacc::bench {
namespace {

ConvOptions parseConv(int argc, char** argv) {
  ConvOptions options;
  std::vector<std::string> passes;
  std::string random;
  CLI::App app("Times convolutions of tacc, layer by layer, and of other libraries beside it.", "tacc_bench conv");
  std::string peers;
  for (const ConvPeer& peer : convPeers()) peers += (peers.empty() ? "" : ", ") + peer.name;
  app.add_option("--net", options.networks, tools::networkNames() + ", or a file of layers")->delimiter(',');
  app.add_option("--random", random, "N or N:SEED: N layers drawn at random, each with its own number of images");
  app.add_option("--batch", options.batches, "images, several with commas (1)")
      ->delimiter(',')
      ->check(tools::isPositive);
  app.add_option("--pass", passes, "forward, backward-data, backward-weights, several with commas (forward)")
      ->delimiter(',')
      ->check(CLI::IsMember({"forward", "backward-data", "backward-weights"}));
  app.add_option("--peer", options.peers, "compare with " + (peers.empty() ? "(none was built in)" : peers))
      ->delimiter(',');
  app.add_option("--layer", options.layers, "only layers whose names contain this, or one of several with commas")
      ->delimiter(',');
  app.add_option("--algorithm", options.algorithm,
                 std::string("force one of tacc's, which must serve all layers: ") + taccConvAlgorithms());
  app.add_option("--threads", options.threads, "threads (1)")->check(tools::isPositive);
  app.add_option("--seconds", options.seconds, "for one layer and pass, all contestants together (0.3)")
      ->check(tools::isPositive);
  app.add_flag("--winograd", options.winograd, "allow Winograd's convolutions, to tacc and to oneDNN");
  app.add_flag("--plain", options.plain,
               "activations are NCHW before and after: tacc plans for that, and oneDNN has kernels for it or reorders");
  app.add_flag("--nhwc", options.nhwc, "the same with NHWC; in place of --plain");
  app.add_flag("--bf16", options.numbers.areBfloat16, "activations in bfloat16; the peers' stay float32");
  app.add_flag("--round-weights", options.numbers.roundsWeights,
               "with --bf16: weights may be rounded to bfloat16 too, and oneDNN computes in bfloat16")
      ->needs("--bf16");
  app.add_flag(
      "--chains", options.chains,
      "channel-wise layers and the 1x1 layers behind them, forward: in one pass, in turn, and the peers' in turn");
  app.add_flag("--cpu-time", options.processorTime,
               "count processor time, for a machine that others use too (one thread)");
  app.add_option("--json", options.jsonFile, "write the results to this file");
  app.add_option("--plot", options.plotFile, "draw the results into this SVG file");
  tools::parseCommandLine(app, "tacc_bench conv", argc, argv, [&] {
    if (!random.empty()) options.drawn = parseDrawnSet(random);
    if (options.networks.empty() && options.drawn.count == 0)
      throw std::invalid_argument("what to measure is missing: --net NAMES or --random N:SEED");
    if (!passes.empty()) options.passes.clear();
    for (const std::string& pass : passes) {
      for (const taccConvPass_t known : {taccConvForward, taccConvBackwardData, taccConvBackwardWeights}) {
        if (pass == passName(known)) options.passes.push_back(known);
      }
    }
    if (options.processorTime && options.threads > 1) throw std::invalid_argument("--cpu-time is for one thread");
    if (options.chains && (options.plain || options.nhwc || options.numbers.areBfloat16 || !passes.empty() ||
                           !options.algorithm.empty() || options.drawn.count > 0))
      throw std::invalid_argument("--chains is forward, of networks, in blocks and float32, by the library's choice");
    if (options.plain && options.nhwc) throw std::invalid_argument("--plain and --nhwc are different layouts");
    for (const std::string& name : options.peers) {
      if (name == "bound" && (options.chains || options.winograd || options.threads > 1 || options.numbers.areBfloat16))
        throw std::invalid_argument("--peer bound is of direct kernels for float32, with one thread and no chains");
      const auto isNamed = [&](const ConvPeer& peer) { return peer.name == name; };
      if (std::none_of(convPeers().begin(), convPeers().end(), isNamed)) {
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

bool isWanted(const ConvOptions& options, const std::string& layer) {
  const auto isPart = [&](const std::string& part) { return layer.find(part) != std::string::npos; };
  return options.layers.empty() || std::any_of(options.layers.begin(), options.layers.end(), isPart);
}

/// What Winograd's transforms cost, and half a step of bfloat16.
double toleranceOf(const ConvOptions& options) {
  return options.numbers.areBfloat16 ? 0.004 : options.winograd ? 1e-4 : 0;
}

ConvResult measure(const ConvOptions& options, const std::string& network, const ConvProblem& problem) {
  const auto own = makeTaccContestant(problem, options.threads, options.winograd, options.algorithm);
  std::vector<tools::Timed> runners = {{[&] { own->run(); }}};
  struct Peer {
    std::string name;
    std::unique_ptr<ConvContestant> contestant;
  };
  std::vector<Peer> peers;
  for (const ConvPeer& peer : convPeers()) {
    if (std::find(options.peers.begin(), options.peers.end(), peer.name) == options.peers.end()) continue;
    for (auto& contestant : peer.make(problem, options.threads, options.winograd)) {
      // Timed twice, a plan would be held against its own luck.
      if (peer.name == "tacc" && contestant->implementation() == own->implementation()) continue;
      runners.push_back({[run = contestant.get()] { run->run(); }});
      if (peer.takesItsTime) {
        runners.back().ownSeconds = [run = contestant.get(), processorTime = options.processorTime] {
          return processorTime ? run->ownTime().processor : run->ownTime().wall;
        };
      }
      peers.push_back({peer.name, std::move(contestant)});
    }
  }
  tools::timeInTurn(runners, options.seconds, options.processorTime);
  ConvResult result{network,
                    problem.layer,
                    problem.pass,
                    problem.batch,
                    problem.operations(),
                    runners.front().seconds,
                    own->reorderSeconds(),
                    own->implementation(),
                    problem.countWrong(own->result().data(), toleranceOf(options)),
                    {},
                    {}};
  if (std::find(options.peers.begin(), options.peers.end(), "tacc") != options.peers.end()) {
    result.peers["tacc"] = {result.seconds, result.reorderSeconds, result.kernel};
    result.candidates.push_back({"tacc", result.kernel, result.seconds, own->predictedSeconds()});
  }
  for (std::size_t i = 0; i < peers.size(); ++i) {
    const double seconds = runners[i + 1].seconds;
    result.candidates.push_back(
        {peers[i].name, peers[i].contestant->implementation(), seconds, peers[i].contestant->predictedSeconds()});
    const auto known = result.peers.find(peers[i].name);
    if (known != result.peers.end() && known->second.seconds <= seconds) continue;
    result.peers[peers[i].name] = {seconds, peers[i].contestant->reorderSeconds(),
                                   peers[i].contestant->implementation()};
  }
  return result;
}

}  // namespace

int runConvBench(int argc, char** argv) {
  ConvReport report;
  report.options = parseConv(argc, argv);
  const ConvOptions& options = report.options;
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
  std::vector<tools::Network> networks;
  for (const std::string& name : options.networks) networks.push_back(tools::findNetwork(name));
  if (options.drawn.count > 0) networks.push_back({"drawn", drawLayers(options.drawn.count, options.drawn.seed)});
  const auto keep = [&](ConvResult result) {
    isRight = isRight && result.wrong == 0;
    report.results.push_back(std::move(result));
    fmt::print("{}", convLine(report, report.results.back()));
    std::fflush(stdout);
  };
  for (const auto& [name, layers] : networks) {
    for (const LayerChain& chain : options.chains ? findChains(layers) : std::vector<LayerChain>{}) {
      if (!isWanted(options, chain.first.name)) continue;
      for (const int batch : options.batches) keep(measureChain(options, name, chain, batch));
    }
    if (options.chains) continue;
    for (const tools::Layer& layer : layers) {
      if (!isWanted(options, layer.name)) continue;
      for (const taccConvPass_t pass : options.passes) {
        // A network does not need the gradient of its own input.
        if (pass == taccConvBackwardData && layer.inChannels <= 3) continue;
        for (const int batch : layer.batch != 0 ? std::vector<int>{layer.batch} : options.batches) {
          ConvProblem problem(layer, pass, batch);
          problem.isPlain = options.plain || options.nhwc;
          problem.numbers = options.numbers;
          if (options.nhwc) problem.plainLayout = taccLayoutNhwc;
          keep(measure(options, name, problem));
        }
      }
    }
  }
  fmt::print("{}", convSummary(report));
  if (!options.jsonFile.empty()) tools::writeOutput(options.jsonFile, convJson(report));
  if (!options.plotFile.empty()) tools::writeOutput(options.plotFile, convPlot(report));
  return isRight ? 0 : 1;
}

}  // namespace tacc::bench
