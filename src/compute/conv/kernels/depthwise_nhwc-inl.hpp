// The kernels of channel-wise convolutions of any size in NHWC: vectors of channels, which follow each other in memory,
// of a few pixels at a time, so that a tap's weights are read once for them. Included by one file per instruction set,
// as tile-inl.hpp.
#include <utility>

#include "compute/conv/kernels/activation-inl.hpp"
#include "compute/conv/kernels/apart_pixels-inl.hpp"
#include "compute/conv/kernels/depthwise_nhwc_kernels.hpp"
#include "compute/conv/kernels/vector-inl.hpp"

namespace tacc::conv {
namespace TACC_CONV_ISA {

/// All lanes of a vector, in the place of a PartOfVector.
struct AllOfVector {
  [[gnu::always_inline]] Vector load(const float* from) const { return TACC_CONV_ISA::load(from); }
  [[gnu::always_inline]] void store(float* to, Vector v) const { TACC_CONV_ISA::store(to, v); }
  template <int kPixel>
  [[gnu::always_inline]] Vector load(const ApartPixels& pixels, const float* first) const {
    return pixels.load<kPixel>(first);
  }
};

/// Its first ones.
struct FirstOfVector : PartOfVector {
  using PartOfVector::load;
  using PartOfVector::PartOfVector;
  template <int kPixel>
  [[gnu::always_inline]] Vector load(const ApartPixels& pixels, const float* first) const {
    return load(pixels.at<kPixel>(first));
  }
};

/// Calls visit(lanes that there are, channel) for all vectors of the channels.
template <class Visit>
[[gnu::always_inline]] inline void forEachVector(int channels, const Visit& visit) {
  int channel = 0;
  for (; channel + TACC_LANES <= channels; channel += TACC_LANES) visit(AllOfVector{}, channel);
  if (channel < channels) visit(PartOfVector(channels - channel), channel);
}

/// Where 16 channels' weights are, and the place among them.
[[gnu::always_inline]] inline std::ptrdiff_t weightsOf(int channel, std::ptrdiff_t block) {
  return channel / blockLength * block + channel % blockLength;
}

/// Sums of a result that take turns, so that products of few results do not wait for each other.
constexpr int setsOf(int results) { return results <= 2 ? 4 : results <= 4 ? 2 : 1; }

/// Adds kTaps taps of a line: a pixel is read once for all results and taps that see it. `from`: pixel 0, of which
/// those of [first, end) are inside, all of them where kIsInside.
template <int kTaps, int kResults, bool kIsInside, class Lanes>
[[gnu::always_inline]] inline void addTaps(const Lanes& lanes, const ApartPixels& pixels, const float* from, int first,
                                           int end, const float* weights, std::ptrdiff_t weightsStep,
                                           Vector (&sum)[setsOf(kResults)][kResults]) {
  Vector w[kTaps];
#pragma GCC unroll 8
  for (int t = 0; t < kTaps; ++t, weights += weightsStep) w[t] = load(weights);
  const float* const behind = pixels.at<8>(from);
  const auto addPixel = [&]<int kPixel>(std::integral_constant<int, kPixel>) __attribute__((always_inline)) {
    if (!kIsInside && (kPixel < first || kPixel >= end)) return;
    const Vector x = lanes.template load<kPixel % 8>(pixels, kPixel < 8 ? from : behind);
#pragma GCC unroll 8
    for (int t = 0; t < kTaps; ++t) {
      if (const int p = kPixel - t; p >= 0 && p < kResults) sum[t % setsOf(kResults)][p] += w[t] * x;
    }
  };
  [&]<int... kPixel>(std::integer_sequence<int, kPixel...>) __attribute__((always_inline)) {
    (addPixel(std::integral_constant<int, kPixel>{}), ...);
  }
  (std::make_integer_sequence<int, kTaps + kResults - 1>());
}

/// Results [at, at + kResults) of a vector of channels. Short vectors: most of what they take is reading.
template <int kResults, class Lanes>
[[gnu::always_inline]] inline void sumLines(const DepthwiseNhwcCall& call, const Lanes& lanes, int at,
                                            const float* input, const float* weights, Vector (&result)[kResults]) {
  constexpr int sets = setsOf(kResults);
  const ApartPixels pixels(call.inputStep);
  Vector sum[sets][kResults] = {};
#pragma GCC unroll 8
  for (int p = 0; p < kResults; ++p) sum[0][p] = result[p];
  for (const ChannelTap* line = call.lines; line != call.lines + call.lineCount; ++line) {
    for (const ChannelTaps* taps = call.together; taps != call.together + call.togetherCount; ++taps) {
      const float* const from = input + line->read + taps->read;
      const float* const w = weights + line->weights + taps->weights;
      const int first = taps->from - at, end = taps->to - at;
      const auto add = [&]<int kTaps>(std::integral_constant<int, kTaps>) __attribute__((always_inline)) {
        if (kResults == 8 && first <= 0 && end >= kTaps + kResults - 1) {
          addTaps<kTaps, kResults, true>(lanes, pixels, from, first, end, w, taps->weightsStep, sum);
        } else {
          addTaps<kTaps, kResults, false>(lanes, pixels, from, first, end, w, taps->weightsStep, sum);
        }
      };
      switch (taps->count) {
        case 1:
          add(std::integral_constant<int, 1>{});
          break;
        case 2:
          add(std::integral_constant<int, 2>{});
          break;
        case 3:
          add(std::integral_constant<int, 3>{});
          break;
        case 4:
          add(std::integral_constant<int, 4>{});
          break;
        case 5:
          add(std::integral_constant<int, 5>{});
          break;
        case 6:
          add(std::integral_constant<int, 6>{});
          break;
        default:
          add(std::integral_constant<int, mostTapsTogether>{});
      }
    }
  }
#pragma GCC unroll 8
  for (int p = 0; p < kResults; ++p) {
    result[p] = sum[0][p];
#pragma GCC unroll 4
    for (int set = 1; set < sets; ++set) result[p] += sum[set][p];
  }
}

/// Longer ones, and taps that share no pixels: a tap at a time.
template <int kResults, class Lanes>
[[gnu::always_inline]] inline void sumEachTap(const DepthwiseNhwcCall& call, const Lanes& lanes, const float* input,
                                              const float* weights, Vector (&sum)[kResults]) {
  for (const ChannelTap* line = call.lines; line != call.lines + call.lineCount; ++line) {
    for (const ChannelTap* tap = call.taps; tap != call.taps + call.tapCount; ++tap) {
      const Vector w = load(weights + line->weights + tap->weights);
      const float* from = input + line->read + tap->read;
#pragma GCC unroll 8
      for (int p = 0; p < kResults; ++p, from += call.inputStep) sum[p] += w * lanes.load(from);
    }
  }
}

/// Results [first, first + kResults) of all channels.
template <int kResults, bool kTogether>
void sumChannels(const DepthwiseNhwcCall& call, std::ptrdiff_t first) {
  const float* const input = call.input + first * call.inputStep;
  const std::ptrdiff_t output = first * call.outputStep;
  const auto sumVector = [&](const auto& lanes, int channel, const float* weights) __attribute__((always_inline)) {
    Vector sum[kResults];
    const Vector start = call.bias != nullptr ? load(call.bias + channel) : Vector{};
#pragma GCC unroll 8
    for (int p = 0; p < kResults; ++p) sum[p] = start;
    if constexpr (kTogether) {
      sumLines<kResults>(call, lanes, static_cast<int>(first), input + channel, weights, sum);
    } else {
      sumEachTap<kResults>(call, lanes, input + channel, weights, sum);
    }
    if (call.addend != nullptr) {
      const float* from = call.addend + output + channel;
#pragma GCC unroll 8
      for (int p = 0; p < kResults; ++p, from += call.outputStep) sum[p] += lanes.load(from);
    }
    activate<kResults>(
        call.activation, [&](int p) __attribute__((always_inline))->Vector & { return sum[p]; });
    float* to = call.output + output + channel;
    if (call.isNonTemporal) {
#pragma GCC unroll 8
      for (int p = 0; p < kResults; ++p, to += call.outputStep) stream(to, sum[p]);
    } else {
#pragma GCC unroll 8
      for (int p = 0; p < kResults; ++p, to += call.outputStep) lanes.store(to, sum[p]);
    }
  };
  int channel = 0;
  for (; channel + TACC_LANES <= call.channels; channel += TACC_LANES) {
    sumVector(AllOfVector{}, channel, call.weights + weightsOf(channel, call.weightsBlock));
  }
  if (channel == call.channels) return;
  if (call.lastWeights != nullptr) {
    sumVector(AllOfVector{}, call.channels - TACC_LANES, call.lastWeights);
  } else {
    sumVector(FirstOfVector(call.channels - channel), channel, call.weights + weightsOf(channel, call.weightsBlock));
  }
}

/// What all results of one tap share: its weights, and what sums begin with, of as many vectors of channels.
template <int kVectors>
struct Scale {
  Vector weights[kVectors], start[kVectors];
};

/// Results [first, first + kResults) of one tap, of kVectors vectors of channels from `channel` on.
template <int kResults, int kVectors, bool kIsNonTemporal>
[[gnu::always_inline]] inline void scaleFew(const DepthwiseNhwcCall& call, std::ptrdiff_t first, int channel,
                                            const Scale<kVectors>& scale) {
  constexpr int all = kResults * kVectors;
  const auto place = [&](std::ptrdiff_t step, int i) __attribute__((always_inline)) {
    return (first + i / kVectors) * step + channel + i % kVectors * TACC_LANES;
  };
  const float* const from = call.input + call.lines->read + call.taps->read;
  Vector sum[all];
#pragma GCC unroll 8
  for (int i = 0; i < all; ++i) {
    const float* const pixel = from + place(call.inputStep, i);
    if (i % kVectors == 0) __builtin_prefetch(pixel + call.ahead);
    sum[i] = scale.start[i % kVectors] + scale.weights[i % kVectors] * load(pixel);
  }
  if (call.addend != nullptr) {
#pragma GCC unroll 8
    for (int i = 0; i < all; ++i) sum[i] += load(call.addend + place(call.outputStep, i));
  }
  activate<all>(
      call.activation, [&](int i) __attribute__((always_inline))->Vector & { return sum[i]; });
#pragma GCC unroll 8
  for (int i = 0; i < all; ++i) {
    float* const to = call.output + place(call.outputStep, i);
    if constexpr (kIsNonTemporal) {
      stream(to, sum[i]);
    } else {
      store(to, sum[i]);
    }
  }
}

/// Vectors of channels that go together at most, where pixels are no more than these.
constexpr int mostScaledVectors = vectorsOfBlock == 2 ? 4 : vectorsOfBlock;

/// One tap of whole vectors of channels: its weights are read once for all results. The vectors of a block go together,
/// so that lines of the cache are read and written whole.
template <bool kIsNonTemporal>
void scaleChannels(const DepthwiseNhwcCall& call) {
  constexpr int vectors = vectorsOfBlock <= 2 ? vectorsOfBlock : 1;
  int channel = 0;
  const auto scaleVectors = [&]<int kVectors>(std::integral_constant<int, kVectors>) __attribute__((always_inline)) {
    constexpr int few = 8 / kVectors;
    Scale<kVectors> scale;
    for (int v = 0; v < kVectors; ++v) {
      const int at = channel + v * TACC_LANES;
      scale.weights[v] =
          load(call.weights + weightsOf(at, call.weightsBlock) + call.lines->weights + call.taps->weights);
      scale.start[v] = call.bias != nullptr ? load(call.bias + at) : Vector{};
    }
    std::ptrdiff_t p = 0;
    for (; p + few <= call.results; p += few) scaleFew<few, kVectors, kIsNonTemporal>(call, p, channel, scale);
    for (; p < call.results; ++p) scaleFew<1, kVectors, kIsNonTemporal>(call, p, channel, scale);
    channel += kVectors * TACC_LANES;
  };
  if constexpr (mostScaledVectors > vectorsOfBlock) {
    // All of a pixel, so that pixels are in the order of memory.
    if (call.channels == 3 * TACC_LANES) return scaleVectors(std::integral_constant<int, 3>{});
    if (call.channels == 4 * TACC_LANES) return scaleVectors(std::integral_constant<int, 4>{});
  }
  while (channel < call.channels) {
    if (channel + vectors * TACC_LANES <= call.channels) {
      scaleVectors(std::integral_constant<int, vectors>{});
    } else {
      scaleVectors(std::integral_constant<int, 1>{});
    }
  }
}

template <int kPixels>
void addChannels(const DepthwiseNhwcGradientCall& call, std::ptrdiff_t first) {
  const float* const input = call.input + first * call.inputStep;
  const float* const gradient = call.gradient + first * call.gradientStep;
  forEachVector(
      call.channels, [&](const auto& lanes, int channel) __attribute__((always_inline)) {
        Vector g[kPixels];
        const float* pixel = gradient + channel;
#pragma GCC unroll 8
        for (int p = 0; p < kPixels; ++p, pixel += call.gradientStep) g[p] = lanes.load(pixel);
        float* const sums = call.sums + weightsOf(channel, call.sumsBlock);
        for (const ChannelTap* line = call.lines; line != call.lines + call.lineCount; ++line) {
          for (const ChannelTap* tap = call.taps; tap != call.taps + call.tapCount; ++tap) {
            float* const to = sums + line->weights + tap->weights;
            const float* from = input + line->read + tap->read + channel;
            Vector sum[2] = {load(to), Vector{}};  // which take turns, as each waits for itself
#pragma GCC unroll 8
            for (int p = 0; p < kPixels; ++p, from += call.inputStep) sum[p % 2] += g[p] * lanes.load(from);
            store(to, sum[0] + sum[1]);
          }
        }
      });
}

/// Pixels that go together, at most.
constexpr int mostChannelPixels = 8;

/// Calls visit(number of pixels that go together, the first one).
template <class Visit>
[[gnu::always_inline]] inline void forEachFew(int pixels, const Visit& visit) {
  std::ptrdiff_t pixel = 0;
  for (; pixel + mostChannelPixels <= pixels; pixel += mostChannelPixels) {
    visit(std::integral_constant<int, mostChannelPixels>{}, pixel);
  }
  const int left = pixels % mostChannelPixels;
  [&]<int... kBefore>(std::integer_sequence<int, kBefore...>) __attribute__((always_inline)) {
    ((left == kBefore + 1 ? visit(std::integral_constant<int, kBefore + 1>{}, pixel) : void()), ...);
  }
  (std::make_integer_sequence<int, mostChannelPixels - 1>());
}

void depthwiseNhwcSum(const DepthwiseNhwcCall& call) {
  // Of many channels pixels in the order of memory are better.
  const bool isScaling = call.lineCount * call.tapCount == 1 && call.channels % TACC_LANES == 0;
  if (isScaling && (call.channels <= mostScaledVectors * TACC_LANES || call.results == 1)) {
    call.isNonTemporal ? scaleChannels<true>(call) : scaleChannels<false>(call);
    return;
  }
  forEachFew(call.results, [&]<int kResults>(std::integral_constant<int, kResults>, std::ptrdiff_t first) {
    if constexpr (TACC_LANES < blockLength) {
      if (call.together != nullptr) return sumChannels<kResults, true>(call, first);
    }
    sumChannels<kResults, false>(call, first);
  });
}

void depthwiseNhwcGradient(const DepthwiseNhwcGradientCall& call) {
  forEachFew(call.pixels, [&]<int kPixels>(std::integral_constant<int, kPixels>, std::ptrdiff_t first) {
    addChannels<kPixels>(call, first);
  });
}

}  // namespace TACC_CONV_ISA

const DepthwiseNhwcKernels& TACC_DEPTHWISE_NHWC() {
  static constexpr DepthwiseNhwcKernels kernels{TACC_CONV_ISA::depthwiseNhwcSum, TACC_CONV_ISA::depthwiseNhwcGradient};
  return kernels;
}

}  // namespace tacc::conv
