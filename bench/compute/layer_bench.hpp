// tacc_bench layers: the layers beside convolutions, which memory limits, against a copy that moves as many bytes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compute/conv_problem.hpp"

namespace tacc::bench {

struct LayerOptions {
  std::vector<int> batches = {1, 16};
  int channels = 64, size = 112;
  std::string layer;  ///< only those whose name contains this
  double seconds = 0.3;
  bool processorTime = false;  ///< of the calling thread, in place of the time that passes
  std::string jsonFile;
};

/// One layer, ready to run.
struct LayerProblem {
  std::string name;
  double bytesRead, bytesWritten;  ///< of tensors, each counted once for every pass over it that the layer must make
  std::function<void()> run;
};

/// All layers over a batch of `channels` x size x size images. They share buffers, which live as long as the functions.
std::vector<LayerProblem> layerProblems(int batch, int channels, int size);

/// One line of the table.
struct LayerResult {
  std::string name;
  int batch;
  double bytes;
  double seconds;
  double copySeconds;  ///< of a copy that reads and writes as many bytes together
  double bandwidth() const { return bytes / seconds; }
  double fraction() const { return copySeconds / seconds; }
};

/// The program's way in: arguments after "layers". Returns the exit status.
int runLayerBench(int argc, char** argv);

}  // namespace tacc::bench
