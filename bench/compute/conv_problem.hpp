// One convolution to be timed, and those who compute it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "support/aligned_floats.hpp"
#include "support/networks/layers.hpp"
#include "tacc/compute.h"

namespace tacc::bench {

/// What contestants compute with in place of float32, those that can.
struct ConvNumbers {
  bool areBfloat16 = false;    ///< activations
  bool roundsWeights = false;  ///< so may weights be
};

/// A layer, a pass and a batch, with data in the layouts of the frameworks: NCHW and KCRS. All numbers are small
/// integers, so every order of summing gives the same.
struct ConvProblem {
  ConvProblem(const tools::Layer& layer, taccConvPass_t pass, int batch);

  tools::Layer layer;
  taccConvPass_t pass;
  int batch;
  tools::AlignedFloats input, weights, outputGradient;
  /// Activations are in a layout of the frameworks before a run and after it: what reordering costs is part of it.
  bool isPlain = false;
  taccLayout_t plainLayout = taccLayoutNchw;
  ConvNumbers numbers;

  double operations() const { return layer.operations() * batch; }
  std::size_t resultSize() const;
  /// How many of some elements of a result, in NCHW or KCRS, are further from the definition than `tolerance` times the
  /// largest of them.
  std::size_t countWrong(const float* result, double tolerance) const;

 private:
  double expected(std::size_t index) const;
};

/// Seconds of a run that takes its time itself; negative where it does not.
struct RunTime {
  double wall = -1, processor = -1;
};

/// One way to compute a problem. Made ready by its maker; run() computes it once, with nothing else in it.
class ConvContestant {
 public:
  virtual ~ConvContestant() = default;
  virtual void run() = 0;
  /// Of the last run, where the caller's clock would count something else too.
  virtual RunTime ownTime() const { return {}; }
  /// What computes it, e.g. "direct avx512 14x2".
  virtual std::string implementation() const = 0;
  /// The result of the last run in NCHW or KCRS.
  virtual std::vector<float> result() = 0;
  /// What its own model says that a run takes; 0 where it has none.
  virtual double predictedSeconds() const { return 0; }
  /// Whether, from now on, it reads its input where `before` writes its result: of the same library, in one layout.
  virtual bool readsWhatIsWrittenBy(ConvContestant&) { return false; }
  /// Seconds for bringing activations from NCHW to where run() has them and its result back; 0 if not needed.
  double reorderSeconds();

 protected:
  /// run() has activations elsewhere, where fillActivations() brings them.
  virtual bool reorders() const { return false; }
  virtual void fillActivations() {}
};

using Contestants = std::vector<std::unique_ptr<ConvContestant>>;

/// tacc itself.
std::unique_ptr<ConvContestant> makeTaccContestant(const ConvProblem& problem, int threads, bool winograd,
                                                   const std::string& algorithm = {});

/// All algorithms of tacc that serve the problem, each forced: what its own choice is held against. Not the reference,
/// which is there to be compared with and not to be fast.
Contestants makeTaccContestants(const ConvProblem& problem, int threads, bool winograd);

/// A library to compare with: its ways to compute a problem, of which the fastest counts; empty when it has none.
struct ConvPeer {
  std::string name;
  Contestants (*make)(const ConvProblem& problem, int threads, bool winograd);
  bool takesItsTime = false;    ///< ConvContestant::ownTime
  bool (*isThere)() = nullptr;  ///< null: it was built in
  bool computes = true;         ///< results; otherwise only time is spent
};

/// Its own blocked and channels-last kernels, for training and for inference; with `winograd` also those, and its own
/// choice. In bfloat16 where weights may be rounded too, as it rounds them always; gradients of weights are float32.
/// Defined where oneDNN is installed.
Contestants makeOnednnContestants(const ConvProblem& problem, int threads, bool winograd);
/// im2col and sgemm, as Caffe does it. Defined where OpenBLAS is installed.
Contestants makeOpenblasContestants(const ConvProblem& problem, int threads, bool winograd);
/// Its direct convolutions. Defined where libxsmm is installed.
Contestants makeLibxsmmContestants(const ConvProblem& problem, int threads, bool winograd);
/// Its conv2d, forward, in a Python that is started with the first problem. It is always plain.
Contestants makePytorchContestants(const ConvProblem& problem, int threads, bool winograd);
/// Whether the Python that would be started has it.
bool isPytorchThere();

/// The bound of direct kernels with one thread: multiply-adds alone, or each tensor read or written once.
Contestants makeBoundContestants(const ConvProblem& problem, int threads, bool winograd);

/// Those that were built in, and PyTorch, which may or may not be there.
const std::vector<ConvPeer>& convPeers();

}  // namespace tacc::bench
