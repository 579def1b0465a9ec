// tacc_bench conv: the convolutions of networks, layer by layer, beside other libraries.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "compute/conv_problem.hpp"
#include "compute/draws.hpp"

namespace tacc::bench {

struct ConvOptions {
  std::vector<std::string> networks;
  DrawnSet drawn;  ///< layers drawn at random, besides
  std::vector<int> batches = {1};
  std::vector<taccConvPass_t> passes = {taccConvForward};
  std::vector<std::string> peers;
  std::vector<std::string> layers;  ///< only layers whose names contain one of these
  std::string algorithm;            ///< tacc's, by its name; empty: the library chooses
  int threads = 1;
  double seconds = 0.3;        ///< for one layer and pass, all contestants together
  bool processorTime = false;  ///< of the calling thread, in place of the time that passes
  bool winograd = false;       ///< also where it rounds more than the definition
  bool plain = false;          ///< NCHW before and after, reordering counts
  bool nhwc = false;           ///< likewise NHWC
  bool chains = false;         ///< channel-wise layers and the 1x1 layers behind them, as one
  ConvNumbers numbers;         ///< tacc's, and oneDNN's where it rounds nothing more
  std::string jsonFile, plotFile;
};

struct ConvPeerResult {
  double seconds;
  double reorderSeconds;
  std::string implementation;
};

/// What a peer offers to compute a layer by. Of tacc's own algorithms also what they were expected to take.
struct ConvCandidate {
  std::string peer, implementation;
  double seconds;
  double predictedSeconds;
};

/// One line of the table.
struct ConvResult {
  std::string network;
  tools::Layer layer;
  taccConvPass_t pass;
  int batch;
  double operations;
  double seconds;
  double reorderSeconds;
  std::string kernel;
  std::size_t wrong;
  std::map<std::string, ConvPeerResult> peers;  ///< the fastest candidate of each
  std::vector<ConvCandidate> candidates = {};   ///< all of them

  double gflops() const { return operations / seconds * 1e-9; }
};

struct ConvReport {
  ConvOptions options;
  std::string isa;
  double peak = 0;  ///< floating-point operations per second of all threads together
  std::vector<ConvResult> results;
};

/// "forward", "backward-data" or "backward-weights".
const char* passName(taccConvPass_t pass);

std::string convJson(const ConvReport& report);
/// One line of the table, with the line end.
std::string convLine(const ConvReport& report, const ConvResult& result);
/// Geometric means over distinct layers, for each pass and batch.
std::string convSummary(const ConvReport& report);

/// An SVG drawing of GFLOP/s, a group of bars for every line of the table.
std::string convPlot(const ConvReport& report);

/// The program's way in: arguments after "conv". Returns the exit status.
int runConvBench(int argc, char** argv);

}  // namespace tacc::bench
