#include "compute/conv/algorithms/channel_direction.hpp"

#include <algorithm>
#include <numeric>
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

/// Of result 0 of a phase: what a tap reads, which may be outside.
struct PlacedTap {
  int source, tap;
};

std::vector<PlacedTap> placedTaps(const ChannelDirection& along, int phase) {
  std::vector<PlacedTap> taps;
  for (int tap = 0; tap < along.taps; ++tap) {
    const int offset = tap * along.dilation - along.pad;
    if (!along.spreads) {
      taps.push_back({phase * along.stride + offset, tap});
    } else if ((phase - offset) % along.stride == 0) {
      taps.push_back({(phase - offset) / along.stride, tap});
    }
  }
  std::sort(taps.begin(), taps.end(), [](const PlacedTap& a, const PlacedTap& b) { return a.source < b.source; });
  return taps;
}

/// Takes taps away of which each reads `step` behind the one before it.
std::vector<PlacedTap> takeRow(std::vector<PlacedTap>& taps, int step) {
  std::vector<PlacedTap> row;
  for (auto next = taps.begin(); next != taps.end();) {
    if (row.empty() || next->source == row.back().source + step) {
      row.push_back(*next);
      next = taps.erase(next);
    } else {
      ++next;
    }
  }
  return row;
}

/// Some taps of a row that are multiplied together.
ChannelTaps tapsOfRow(const ChannelDirection& along, const PlacedTap* row, int count, std::ptrdiff_t pixelFloats) {
  const int step = along.sourceStep(), first = row->source;
  ChannelTaps taps{};
  taps.read = first * pixelFloats;
  taps.weights = std::ptrdiff_t{row->tap} * blockLength;
  taps.weightsStep = count > 1 ? std::ptrdiff_t{row[1].tap - row[0].tap} * blockLength : 0;
  taps.count = count;
  taps.from = first < 0 ? ceilDivide(-first, step) : 0;
  taps.to = first < along.sources ? (along.sources - 1 - first) / step + 1 : 0;
  return taps;
}

}  // namespace

int ChannelDirection::tapStep() const { return takesApart ? dilation / std::gcd(dilation, stride) : 1; }

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
        ChannelRun& run = runs.emplace_back(ChannelRun{x, 1, {}, {}});
        for (const ChannelDirection::Source& source : sources) {
          run.taps.push_back({source.source * pixelFloats, std::ptrdiff_t{source.tap} * blockLength});
        }
      }
      std::swap(last, sources);
    }
  }
  return runs;
}

std::vector<ChannelRun> channelPhases(const ChannelDirection& along, std::ptrdiff_t pixelFloats) {
  std::vector<ChannelRun> phases;
  for (int phase = 0; phase < std::min(along.resultStep(), along.results); ++phase) {
    ChannelRun& run = phases.emplace_back();
    run.first = phase;
    run.count = ceilDivide(along.results - phase, along.resultStep());
    std::vector<PlacedTap> taps = placedTaps(along, phase);
    while (!taps.empty()) {
      const std::vector<PlacedTap> row = takeRow(taps, along.sourceStep());
      const int all = static_cast<int>(row.size()), parts = ceilDivide(all, mostTapsTogether);
      for (int part = 0, from = 0; part < parts; ++part) {
        const int count = all / parts + (part < all % parts ? 1 : 0);
        const ChannelTaps some = tapsOfRow(along, row.data() + from, count, pixelFloats);
        from += count;
        // Some result sees one of them.
        if (some.from < std::min(some.to, run.count + count - 1)) run.together.push_back(some);
      }
    }
  }
  return phases;
}

}  // namespace tacc::conv
