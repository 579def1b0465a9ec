// The kernels of convolutions of a few channels in NCHW: vectors of pixels of a line, not of channels. Included by one
// file per instruction set, as tile-inl.hpp.
#include "compute/conv/kernels/activation-inl.hpp"
#include "compute/conv/kernels/planes_kernels.hpp"
#include "compute/conv/kernels/vector-inl.hpp"

namespace tacc::conv {
namespace TACC_CONV_ISA {

/// Most vectors of pixels for this number of outputs: what registers hold beside a vector of input and the weights.
constexpr int planeVectors(int outputs) {
  const int most = (TACC_REGISTERS - 2 - outputs) / outputs;
  return most >= 8 ? 8 : most >= 4 ? 4 : 2;
}

/// Sums that do not wait for each other.
constexpr int planeChains(int sums) { return sums >= 4 ? 1 : 4 / sums; }

template <int kOutputs, int kVectors>
[[gnu::always_inline]] inline void addPlaneValue(Vector (&sum)[kOutputs][kVectors], const PlaneCall& call,
                                                 const PlaneValue& value, int x) {
  const float* const input = value.input + x;
  const float* const weights = call.weights + value.place * kOutputs;
  Vector w[kOutputs];
#pragma GCC unroll 4
  for (int k = 0; k < kOutputs; ++k) w[k] = broadcast(weights[k]);
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    const Vector pixels = load(input + v * TACC_LANES);
#pragma GCC unroll 4
    for (int k = 0; k < kOutputs; ++k) sum[k][v] += w[k] * pixels;
  }
}

[[gnu::always_inline]] inline void storePlane(const PlaneCall& call, Vector sum, std::ptrdiff_t at, int left) {
  if (left >= TACC_LANES) {
    if (call.addend != nullptr) sum += load(call.addend + at);
    store(call.output + at, activated(call.activation, sum));
    return;
  }
  float last[TACC_LANES] = {};  // pixels behind the line are somebody else's
  for (int p = 0; call.addend != nullptr && p < left; ++p) last[p] = call.addend[at + p];
  sum += load(last);
  store(last, activated(call.activation, sum));
  for (int p = 0; p < left; ++p) call.output[at + p] = last[p];
}

template <int kOutputs, int kVectors>
[[gnu::always_inline]] inline void planeTile(const PlaneCall& call, int x) {
  constexpr int kChains = planeChains(kOutputs * kVectors);
  Vector sum[kChains][kOutputs][kVectors];
#pragma GCC unroll 4
  for (int c = 0; c < kChains; ++c) {
#pragma GCC unroll 4
    for (int k = 0; k < kOutputs; ++k) {
      const Vector start = c == 0 && call.bias != nullptr ? broadcast(call.bias[k]) : Vector{};
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sum[c][k][v] = start;
    }
  }
  const PlaneValue* value = call.values;
  const PlaneValue* const end = value + call.count;
  for (; end - value >= kChains; value += kChains) {
#pragma GCC unroll 4
    for (int c = 0; c < kChains; ++c) addPlaneValue(sum[c], call, value[c], x);
  }
  if constexpr (kChains > 1) {
    for (; value != end; ++value) addPlaneValue(sum[0], call, *value, x);
  }
#pragma GCC unroll 4
  for (int k = 0; k < kOutputs; ++k) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 4
      for (int c = 1; c < kChains; ++c) sum[0][k][v] += sum[c][k][v];
      const int at = x + v * TACC_LANES;
      if (at < call.pixels) storePlane(call, sum[0][k][v], k * call.outputPlane + at, call.pixels - at);
    }
  }
}

/// A line of kOutputs channels.
template <int kOutputs>
void planeLine(const PlaneCall& call) {
  constexpr int kMost = planeVectors(kOutputs);
  for (int x = 0; x < call.pixels;) {
    const int vectors = (call.pixels - x + TACC_LANES - 1) / TACC_LANES;
    if (kMost > 4 && vectors > 4) {
      planeTile<kOutputs, kMost>(call, x);
      x += kMost * TACC_LANES;
    } else if (kMost >= 4 && vectors > 2) {
      planeTile<kOutputs, kMost >= 4 ? 4 : 2>(call, x);
      x += 4 * TACC_LANES;
    } else if (vectors > 1) {
      planeTile<kOutputs, 2>(call, x);
      x += 2 * TACC_LANES;
    } else {
      planeTile<kOutputs, 1>(call, x);
      x += TACC_LANES;
    }
  }
}

template <int kTaps>
[[gnu::always_inline]] inline void planeGradientTile(const PlaneGradientCall& call, int first) {
  constexpr int kChains = planeChains(kTaps);
  static_assert(kChains * TACC_LANES <= planePadding);
  const float* input[kTaps];
  float* sums[kTaps];
  Vector sum[kChains][kTaps];
#pragma GCC unroll 8
  for (int t = 0; t < kTaps; ++t) {
    const PlaneValue& value = call.values[first + t];
    input[t] = value.input;
    sums[t] = call.sums + value.place * planeSumFloats;
    sum[0][t] = load(sums[t]);
#pragma GCC unroll 4
    for (int c = 1; c < kChains; ++c) sum[c][t] = Vector{};
  }
  for (int x = 0; x < call.pixels; x += kChains * TACC_LANES) {
#pragma GCC unroll 4
    for (int c = 0; c < kChains; ++c) {
      const Vector g = load(call.gradient + x + c * TACC_LANES);
#pragma GCC unroll 8
      for (int t = 0; t < kTaps; ++t) sum[c][t] += g * load(input[t] + x + c * TACC_LANES);
    }
  }
#pragma GCC unroll 8
  for (int t = 0; t < kTaps; ++t) {
#pragma GCC unroll 4
    for (int c = 1; c < kChains; ++c) sum[0][t] += sum[c][t];
    store(sums[t], sum[0][t]);
  }
}

/// Values in parts of up to eight, nearly equal.
inline void planeGradient(const PlaneGradientCall& call) {
  constexpr int kMost = 8;
  const int parts = (call.count + kMost - 1) / kMost;
  for (int part = 0, first = 0; part < parts; ++part) {
    const int taps = (call.count + parts - 1 - part) / parts;
    switch (taps) {
      case 1:
        planeGradientTile<1>(call, first);
        break;
      case 2:
        planeGradientTile<2>(call, first);
        break;
      case 3:
        planeGradientTile<3>(call, first);
        break;
      case 4:
        planeGradientTile<4>(call, first);
        break;
      case 5:
        planeGradientTile<5>(call, first);
        break;
      case 6:
        planeGradientTile<6>(call, first);
        break;
      case 7:
        planeGradientTile<7>(call, first);
        break;
      default:
        planeGradientTile<8>(call, first);
        break;
    }
    first += taps;
  }
}

}  // namespace TACC_CONV_ISA

const PlaneKernels& TACC_PLANE_KERNELS() {
  using namespace TACC_CONV_ISA;
  static constexpr PlaneKernels kernels{
      TACC_LANES, {nullptr, planeLine<1>, planeLine<2>, planeLine<3>, planeLine<4>}, planeGradient};
  return kernels;
}

}  // namespace tacc::conv
