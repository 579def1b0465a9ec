#include "compute/conv/algorithms/group_delivery.hpp"

#include <algorithm>
#include <cstring>

namespace tacc::conv {

void GroupDelivery::begin(float* result) const {
  // Channel-wise weights of 16 groups share rows.
  if (shape().isDepthwise()) clearGradient(result, description_.weightLayout, shape(), description_.accumulate);
}

void GroupDelivery::deliverBlock(GroupSums sums, std::size_t span, int ofSpan, int r, float* result) const {
  const GroupSteps& steps = cut_.steps[static_cast<std::size_t>(cut_.spans[span].steps)];
  if (!steps.isPermuted) {
    deliverLanes(sums, span, ofSpan, r, result);
    return;
  }
  if (description_.weightLayout != taccWeightsBlocked) {
    deliverApart(sums, span, ofSpan, r, result);
    return;
  }
  const int taps = shape().kernelWidth;
  const std::ptrdiff_t nextTap = sums.steps * blockLength;
  const float* row = sums.rows;
  for (int b = 0; b < static_cast<int>(steps.counts.size()); ++b) {
    for (int value = 0; value < steps.counts[static_cast<std::size_t>(b)]; ++value, row += blockLength) {
      const GroupWeights::Place* const places = weights_.at(span, ofSpan, b, value);
      for (int lane = 0; lane < blockLength; lane += places[lane].together) {
        const GroupWeights::Place& place = places[lane];
        if (place.first < 0) continue;
        if (place.together > 1 || place.filling > 0 || description_.accumulate) {
          deliverTaps(row + lane, nextTap, place, r, result);
          continue;
        }
        float* const to = result + place.first + std::ptrdiff_t{place.tap} * r * taps;
        for (int t = 0; t < taps; ++t) to[t * std::ptrdiff_t{place.tap}] = row[lane + t * nextTap];
      }
    }
  }
}

/// Each lane by itself: in KCRS no two are beside each other.
void GroupDelivery::deliverApart(GroupSums sums, std::size_t span, int ofSpan, int r, float* result) const {
  const GroupSteps& steps = cut_.steps[static_cast<std::size_t>(cut_.spans[span].steps)];
  for (int t = 0; t < shape().kernelWidth; ++t) {
    const std::ptrdiff_t tap = std::ptrdiff_t{r} * shape().kernelWidth + t;
    const float* row = sums.rows + sums.steps * t * blockLength;
    for (int b = 0; b < static_cast<int>(steps.counts.size()); ++b) {
      for (int value = 0; value < steps.counts[static_cast<std::size_t>(b)]; ++value, row += blockLength) {
        const GroupWeights::Place* const places = weights_.at(span, ofSpan, b, value);
        for (int lane = 0; lane < blockLength; ++lane) {
          const GroupWeights::Place& place = places[lane];
          if (place.first < 0) continue;
          float& to = result[place.first + place.tap * tap];
          to = row[lane] + (description_.accumulate ? to : 0.0F);
        }
      }
    }
  }
}

/// Lanes that go together, of all taps of a line of the kernel.
void GroupDelivery::deliverTaps(const float* from, std::ptrdiff_t nextTap, GroupWeights::Place place, int r,
                                float* result) const {
  const int taps = shape().kernelWidth;
  float* to = result + place.first + std::ptrdiff_t{place.tap} * r * taps;
  const auto forEachTap = [&](const auto& deliverOne) __attribute__((always_inline)) {
    for (int t = 0; t < taps; ++t, from += nextTap, to += place.tap) deliverOne();
  };
  constexpr int half = blockLength / 2;
  if (description_.accumulate) {
    forEachTap([&] {
      for (int lane = 0; lane < place.together; ++lane) to[lane] += from[lane];
    });
  } else if (place.together == half && place.filling == half) {
    forEachTap([&] {
      std::memcpy(to, from, half * sizeof(float));
      std::fill_n(to + half, half, 0.0F);
    });
  } else {
    forEachTap([&] {
      for (int lane = 0; lane < place.together; ++lane) to[lane] = from[lane];
      for (int lane = 0; lane < place.filling; ++lane) to[place.together + lane] = 0;
    });
  }
}

/// Without permutations the channels of a group are steps that follow each other. Lanes of one group, and of one
/// block of its output channels, go together.
void GroupDelivery::deliverLanes(GroupSums sums, std::size_t span, int ofSpan, int r, float* result) const {
  const Shape& s = shape();
  const int firstOut = (cut_.spans[span].firstTarget + ofSpan) * blockLength;
  const int firstIn = cut_.spans[span].firstSource * blockLength +
                      cut_.steps[static_cast<std::size_t>(cut_.spans[span].steps)].firstValue;
  const int endOut = std::min(firstOut + blockLength, s.outChannels);
  for (int out = firstOut, lanes = 0; out < endOut; out += lanes) {
    const int group = out / s.outPerGroup();
    const int within = out % s.outPerGroup();
    lanes = std::min({endOut - out, s.outPerGroup() - within, blockLength - within % blockLength});
    const bool isFilled = description_.weightLayout == taccWeightsBlocked && within + lanes == s.outPerGroup();
    const int filling = isFilled && !description_.accumulate && !s.isDepthwise()
                            ? (blockLength - (within + lanes) % blockLength) % blockLength
                            : 0;
    const float* const ofGroup = sums.rows + out - firstOut + (group * s.inPerGroup() - firstIn) * blockLength;
    for (int in = 0; in < s.inPerGroup(); in += blockLength) {
      const auto blockOf = [&](int t) {
        return weightBlock(s, description_.weightLayout, group, within / blockLength, in / blockLength, r, t);
      };
      WeightBlock place = blockOf(0);
      const std::ptrdiff_t tapStep = s.kernelWidth > 1 ? blockOf(1).base - place.base : 0;
      for (int t = 0; t < s.kernelWidth; ++t, place.base += tapStep) {
        const float* from = ofGroup + (sums.steps * t + in) * blockLength;
        deliverRows(from, place, lanes, filling, result + place.base + within % blockLength * place.outStep);
      }
    }
  }
}

/// Some lanes of rows of sums to the weights of one tap, and zeros behind each row.
void GroupDelivery::deliverRows(const float* __restrict from, const WeightBlock& place, int lanes, int filling,
                                float* __restrict to) const {
  for (int c = 0; c < place.ins; ++c, from += blockLength, to += place.inStep) {
    if (description_.accumulate) {
      for (int lane = 0; lane < lanes; ++lane) to[lane * place.outStep] += from[lane];
    } else if (place.outStep != 1) {
      for (int lane = 0; lane < lanes; ++lane) to[lane * place.outStep] = from[lane];
    } else if (lanes == blockLength) {
      std::copy_n(from, blockLength, to);
    } else {
      for (int lane = 0; lane < lanes; ++lane) to[lane] = from[lane];
      for (int lane = lanes; lane < lanes + filling; ++lane) to[lane] = 0;
    }
  }
}

}  // namespace tacc::conv
