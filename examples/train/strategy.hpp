// How ranks train one model together.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "memory.hpp"
#include "tacc/tacc.h"

namespace tacc::train {

struct StrategyOptions {
  std::string mode = "serial";
  float learningRate = 0.02F;
  float momentum = 0.9F;
  // Of elastic averaging alone:
  int period = 1;                // every so many steps exchange
  float elasticity = 0;          // 0: the library's choice
  std::string wire = "float32";  // what an exchange moves for each weight
  std::string group = "2";       // hierarchical: host, numa, network, or so many neighbouring ranks
};

/// Seconds that this rank spent since start().
struct Communication {
  double waited = 0;  // in communication, the program doing nothing else
  double taken = 0;   // that communication took, beside the computation or not
};

/// A rank's way to take steps. Used by one thread; all ranks of the communicator make the same calls, in the same
/// order.
class Strategy {
 public:
  virtual ~Strategy() = default;
  /// Rank 0's weights become those of all.
  virtual void start() = 0;
  /// From the next step on; the same on all ranks.
  virtual void setLearningRate(float rate) = 0;
  /// One step with the gradients that stand in the parameters; changes the weights.
  virtual void step() = 0;
  /// The weights that are the result of the training so far, valid until the next call. Collective.
  virtual const float* center() = 0;
  virtual Communication communication() const = 0;
};

/// "serial", "allreduce", "allreduce-fused" (one call for sum and update), and those of elastic averaging.
std::vector<std::string> modeNames();
/// Whether it exchanges with a center every tau-th step.
bool isElastic(const std::string& mode);

/// `parameters` and `comm` outlive it. Serial trains by itself and wants no communicator. Collective.
std::unique_ptr<Strategy> makeStrategy(const StrategyOptions& options, Parameters& parameters, taccComm_t comm);

}  // namespace tacc::train
