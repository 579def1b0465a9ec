// Channel by channel, along one dimension of a plane: which places of the result see the same taps, in any pass.
#pragma once

#include <cstddef>
#include <vector>

#include "compute/conv/kernels/depthwise_nhwc_kernels.hpp"

namespace tacc::conv {

/// What each place of the result is a sum of. For gradients of the weights the result is the output's gradient, of
/// which each place is multiplied with these.
struct ChannelDirection {
  int results, sources, taps, stride, dilation, pad;
  bool spreads;  // backward to the data
  bool takesApart =
      false;  // results go together whose taps, that may be apart, see sources that are side by side for them

  struct Source {
    int tap, source;
  };
  /// Puts the taps that find something inside for a result, and what, into `found`.
  void findSources(int result, std::vector<Source>& found) const;
  /// From result to result of those that see the same taps, and from source to source of these.
  int resultStep() const { return (spreads ? stride : 1) * tapStep(); }
  int sourceStep() const { return (spreads ? 1 : stride) * tapStep(); }

 private:
  int tapStep() const;
};

/// Results of a line that see the same taps, resultStep() from one to the next.
struct ChannelRun {
  int first, count;
  std::vector<ChannelTap> taps;       // of the first one
  std::vector<ChannelTaps> together;  // of all results of a phase, in place of those
};

/// All results of a line, whose sources have `pixelFloats` floats each: in their order where resultStep() is 1, and
/// else every resultStep()-th of them in turn. Weights of a tap are blocks of 16.
std::vector<ChannelRun> channelRuns(const ChannelDirection& along, std::ptrdiff_t pixelFloats);

/// The same for vectors shorter than a block: every resultStep()-th result goes together, also those at the ends of a
/// line, for which some taps find nothing.
std::vector<ChannelRun> channelPhases(const ChannelDirection& along, std::ptrdiff_t pixelFloats);

}  // namespace tacc::conv
