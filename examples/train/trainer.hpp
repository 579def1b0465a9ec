// One run: a model, a strategy, and epochs.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "dataset.hpp"
#include "options.hpp"
#include "team.hpp"

namespace tacc::train {

/// What an epoch came to, over all ranks.
struct EpochRecord {
  int epoch = 0;             // 1, 2, ...
  std::uint64_t images = 0;  // that all ranks have trained on since the beginning
  double loss = 0;           // mean over the epoch's batches, each before its step
  double trainAccuracy = 0;  // likewise
  double testAccuracy = 0;   // of the center, on the images to test with
  double seconds = 0;        // since the beginning, without what tests take
  double waitedShare = 0;    // of the epoch's seconds: waiting for communication, the mean of the ranks
  double hiddenShare = 0;    // of the time that communication took: while the rank computed
};

/// One way to train.
struct Run {
  std::string mode;
  int tau = 0;  // 0: the mode has none

  /// "sync2, tau 4".
  std::string label() const;
};

/// Every mode that was asked for, those of elastic averaging with each tau.
std::vector<Run> runsOf(const Options& options);

/// The learning rate of an epoch (1, 2, ...), by the schedule.
float learningRateOf(const Options& options, int epoch);

/// Trains from first weights drawn by the seed. `onEpoch` hears of every epoch, on all ranks. Collective; a rank of
/// a serial run has a team and shard of its own, and `comm` may be NULL. Returns the final center.
std::vector<float> train(const Options& options, const Run& run, const Split& data, const Team& team, taccComm_t comm,
                         const std::function<void(const EpochRecord&)>& onEpoch);

}  // namespace tacc::train
