#include "compute/conv/algorithms/channel_direction.hpp"

#include <algorithm>
#include <utility>

#include "compute/conv/shape.hpp"

namespace tacc::conv {
namespace {

/// The source of a tap for a result, or -1.
int sourceOf(const ChannelDirection& along, int result, int tap) {
  const int offset = tap * along.dilation - along.pad;
  if (!along.spreads) {
    const int source = result * along.stride + offset;
    return source < along.sources ? source : -1;  // which is below zero where it is before the first one
  }
  const int place = result - offset;
  return place >= 0 && place % along.stride == 0 && place / along.stride < along.sources ? place / along.stride : -1;
}

}  // namespace

void ChannelDirection::findSources(int result, std::vector<Source>& found) const {
  found.clear();
  for (int tap = 0; tap < taps; ++tap) {
    if (const int source = sourceOf(*this, result, tap); source >= 0) found.push_back({tap, source});
  }
}

std::vector<ChannelRun> channelRuns(const ChannelDirection& along, std::ptrdiff_t pixelFloats) {
  std::vector<ChannelRun> runs;
  std::vector<ChannelDirection::Source> last, sources;
  for (int phase = 0; phase < std::min(along.resultStep(), along.results); ++phase) {
    last.clear();
    for (int x = phase; x < along.results; x += along.resultStep()) {
      along.findSources(x, sources);
      const auto followsLast = [&] {
        if (x == phase || sources.size() != last.size()) return false;
        for (std::size_t i = 0; i < sources.size(); ++i) {
          if (sources[i].tap != last[i].tap || sources[i].source != last[i].source + along.sourceStep()) return false;
        }
        return true;
      };
      if (followsLast()) {
        ++runs.back().count;
      } else {
        ChannelRun& run = runs.emplace_back(ChannelRun{x, 1, {}});
        for (const ChannelDirection::Source& source : sources) {
          run.taps.push_back({source.source * pixelFloats, std::ptrdiff_t{source.tap} * blockLength});
        }
      }
      std::swap(last, sources);
    }
  }
  return runs;
}

}  // namespace tacc::conv
