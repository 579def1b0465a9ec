#include "compute/layer_bench.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "support/command_line.hpp"
#include "support/output.hpp"
#include "support/turns.hpp"

namespace tacc::bench {
namespace {

LayerOptions parseLayer(int argc, char** argv) {
  LayerOptions options;
  CLI::App app("Times tacc's layers beside convolutions, and copies that move as many bytes.", "tacc_bench layers");
  app.add_option("--batch", options.batches, "images, several with commas (1,16)")
      ->delimiter(',')
      ->check(tools::isPositive);
  app.add_option("--channels", options.channels, "channels of an image (64)")->check(tools::isPositive);
  app.add_option("--size", options.size, "lines and columns of an image, at least 8 (112)")->check(CLI::Range(8, 4096));
  app.add_option("--layer", options.layer, "only layers whose name contains this");
  app.add_option("--seconds", options.seconds, "for one layer and its copy together (0.3)")->check(tools::isPositive);
  app.add_flag("--cpu-time", options.processorTime, "count processor time, for a machine that others use too");
  app.add_option("--json", options.jsonFile, "write the results to this file");
  tools::parseCommandLine(app, "tacc_bench layers", argc, argv, [] {});
  return options;
}

LayerResult measure(const LayerOptions& options, int batch, const LayerProblem& problem) {
  const double bytes = problem.bytesRead + problem.bytesWritten;
  const auto half = static_cast<std::size_t>(bytes / 2);
  const tools::AlignedFloats from(half / sizeof(float));
  tools::AlignedFloats to(half / sizeof(float));
  std::vector<tools::Timed> runners = {{problem.run}, {[&] { std::memcpy(to.data(), from.data(), half); }}};
  tools::timeInTurn(runners, options.seconds, options.processorTime);
  return {problem.name, batch, bytes, runners[0].seconds, runners[1].seconds};
}

std::string layersJson(const LayerOptions& options, const std::vector<LayerResult>& results) {
  nlohmann::ordered_json json = {{"isa", taccComputeIsa()},
                                 {"channels", options.channels},
                                 {"size", options.size},
                                 {"results", nlohmann::ordered_json::array()}};
  for (const LayerResult& r : results) {
    json["results"].push_back({{"layer", r.name},
                               {"batch", r.batch},
                               {"bytes", r.bytes},
                               {"seconds", r.seconds},
                               {"gigabytes_per_second", r.bandwidth() * 1e-9},
                               {"copy_seconds", r.copySeconds},
                               {"copy_fraction", r.fraction()}});
  }
  return json.dump(2) + '\n';
}

}  // namespace

int runLayerBench(int argc, char** argv) {
  const LayerOptions options = parseLayer(argc, argv);
  tools::requireWritable(options.jsonFile);
  if (taccComputeIsa() == nullptr) throw std::runtime_error(taccGetLastError(nullptr));
  fmt::print("# {}, one thread, images of {} x {} x {}; the copy moves as many bytes\n", taccComputeIsa(),
             options.channels, options.size, options.size);
  fmt::print("{:32} {:>5} {:>8} {:>8} {:>8} {:>6}\n", "layer", "batch", "MB", "GB/s", "copy", "");
  std::vector<LayerResult> results;
  for (const int batch : options.batches) {
    for (const LayerProblem& problem : layerProblems(batch, options.channels, options.size)) {
      if (problem.name.find(options.layer) == std::string::npos) continue;
      const LayerResult r = measure(options, batch, problem);
      fmt::print("{:32} {:5} {:8.1f} {:8.1f} {:8.1f} {:5.0f}%\n", r.name, r.batch, r.bytes * 1e-6, r.bandwidth() * 1e-9,
                 r.bytes / r.copySeconds * 1e-9, 100 * r.fraction());
      std::fflush(stdout);
      results.push_back(r);
    }
  }
  if (!options.jsonFile.empty()) tools::writeOutput(options.jsonFile, layersJson(options, results));
  return 0;
}

}  // namespace tacc::bench
