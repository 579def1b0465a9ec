// What of a convolution is still in the caches when it is needed, and what is not.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "compute/conv/algorithms/direct_driver.hpp"
#include "compute/conv/algorithms/direct_shapes.hpp"
#include "compute/conv/core_model.hpp"
#include "compute/conv/cost.hpp"
#include "compute/conv/shape.hpp"
#include "compute/layers/kernels.hpp"

namespace tacc::conv {

/// Whether what `driver` reads of the whole batch is too much to be in the L2 cache still.
inline bool comesFromMemory(const DirectDriver& driver, const Shape& s) {
  const auto images = static_cast<std::size_t>(s.lines()) * static_cast<std::size_t>(s.groups);
  return !staysInL2(driver.inputBytes() * images);
}

/// Whether a convolution of one tap with a stride, forward, reads its input from behind the L2 cache, and its
/// weights, over again for every line, from inside it.
inline bool goesByLine(const Description& d) {
  const Shape& s = d.shape;
  const std::size_t input = tensorFloats(taccLayoutNchw16c, s.batch, s.inChannels, s.height, s.width);
  const auto weights = static_cast<std::size_t>(s.inPerGroup()) * static_cast<std::size_t>(s.outPerGroup());
  return d.pass == taccConvForward && s.kernelHeight * s.kernelWidth == 1 && s.strideWidth > 1 &&
         !staysInL2(input * sizeof(float)) && staysInL2(weights * sizeof(float));
}

/// Where weights end that are too many to be in the L2 cache still; null where they are few, and for products, for
/// which hardware that looks ahead is quick enough.
inline const float* weightsFromMemory(const Shape& s, const float* packed, std::size_t floats) {
  return staysInL2(floats * sizeof(float)) || s.kernelHeight * s.kernelWidth == 1 ? nullptr : packed + floats;
}

/// Pixels of an image that a convolution reads: strides leave out others.
inline double usedPixels(const Shape& s) {
  return std::min(double(s.height) * s.width, double(s.outHeight) * s.outWidth * s.kernelHeight * s.kernelWidth);
}

/// Bytes of all images that a convolution reads or writes.
inline double touchedBytes(const Description& d) {
  const Shape& s = d.shape;
  const auto channels = [](taccLayout_t layout, int count) {
    return double(layout == taccLayoutNchw16c ? roundUp(count, blockLength) : count);
  };
  return s.batch * sizeof(float) *
         (channels(d.inputLayout, s.inChannels) * usedPixels(s) +
          channels(d.outputLayout, s.outChannels) * s.outHeight * s.outWidth);
}

/// Whether what a gradient of the weights reads comes from memory, and not from the last cache, which is near enough
/// for what kernels fetch by themselves, a few pixels ahead.
inline bool readsFromMemory(const Description& d) { return touchedBytes(d) > 4 * static_cast<double>(l2CacheBytes()); }

/// How far ahead of a pixel `call` is to fetch what comes from memory, in floats, of a tensor whose pixels, lines and
/// images are so far apart: some pixels, in whole lines where it goes through several, and of small images in whole
/// images, as what lies behind one of them is another block of channels.
inline std::ptrdiff_t fetchDistance(const GradientCall& call, std::ptrdiff_t pixel, std::ptrdiff_t line,
                                    std::ptrdiff_t image) {
  constexpr int pixelsAhead = 64, pixelsOfSmallImage = 256;
  const std::int64_t ofImage = std::max<std::int64_t>(1, std::int64_t{call.lines} * call.pixels);
  if (call.images > 1 && ofImage <= pixelsOfSmallImage)
    return ceilDivide(pixelsAhead, static_cast<int>(ofImage)) * image;
  return call.lines == 1 ? pixelsAhead * pixel : ceilDivide(pixelsAhead, std::max(1, call.pixels)) * line;
}

/// Of the result, forward or backward to the data, in NHWC without groups, where caches are near; 0 pixels elsewhere.
struct NearNhwcResult {
  int channels = 0;
  double pixels = 0;
  double bytes() const { return pixels * channels * static_cast<double>(sizeof(float)); }
};
inline NearNhwcResult nearNhwcResult(const Description& d) {
  const Shape& s = d.shape;
  const bool isForward = d.pass == taccConvForward;
  const bool isOne = s.groups == 1 && (isForward ? d.outputLayout : d.inputLayout) == taccLayoutNhwc;
  if (hasFarCaches() || !isOne || d.pairs.areRead || d.pairs.areWritten) return {};
  if (isForward) return {s.outChannels, double(s.batch) * s.outHeight * s.outWidth};
  return {s.inChannels, double(s.batch) * s.height * s.width};
}

/// What tiles that write such a result, some blocks of a pixel at a time, take beside so many cycles of products: a
/// result that goes to memory drives what is read out of the caches, too. Products hide what comes meanwhile.
inline double nearMemoryCycles(const Description& d, double products) {
  constexpr double readBytes = 9, hidden = 0.45;
  const NearNhwcResult result = nearNhwcResult(d);
  if (result.pixels == 0) return 0;
  // Of pixels that are no whole lines, most parts of one are stored to two, with what their neighbours store later:
  // from behind the L2 cache too half vectors wait for that.
  const bool isUneven =
      d.vectorLanes == blockLength / 2 && result.channels > blockLength && result.channels % blockLength != 0;
  const double ofLine = isUneven ? 40 : 8, ofUnevenLine = isUneven ? 5 : 0;
  const double last = coreModel().lastCacheBytes, read = touchedBytes(d) - result.bytes();
  const double lines = result.channels <= blockLength ? double(result.channels) / blockLength
                                                      : ceilDivide(result.channels, blockLength);  // of a pixel
  const auto beyond = [](double times) { return std::clamp(times - 1, 0.0, 1.0); };
  const double ofResult = beyond(2 * result.bytes() / last) * ofLine +
                          beyond(result.bytes() / static_cast<double>(l2CacheBytes())) * ofUnevenLine;
  const double written = ofResult * lines * result.pixels;
  return std::max(0.0, written + (result.bytes() + read > last ? read / readBytes : 0) - hidden * products);
}

/// What tiles of long vectors take less where there is a single block of results: one is over before the end of the one
/// before is. Not where results that share lines of the cache leave the L2 cache.
inline double nearSingleCycles(const Description& d) {
  constexpr double ofPixel = 1;
  const NearNhwcResult result = nearNhwcResult(d);
  if (!d.hasTwoWideUnits || result.channels > blockLength) return 0;
  const double beyond = std::clamp((result.bytes() / static_cast<double>(l2CacheBytes()) - 1) / 3, 0.0, 1.0);
  return ofPixel * (result.channels < blockLength ? 1 - beyond : 1) * result.pixels;
}

/// What groups that cut blocks cost beside their products: each brings lines of the cache that others use too, for each
/// of them again where an image is more than a cache holds. From near caches hardware brings most of them in time.
inline double cutGroupCycles(const Description& d) {
  constexpr double bytesOfL1 = 32 * 1024, ofLineOfCache = 4.5;
  const Shape& s = d.shape;
  const double bytes = touchedBytes(d) / s.batch;
  // Gradients of weights go through all of an image group by group: the less of it the last cache keeps, the more of
  // its lines short vectors wait for anew, most of all for several taps.
  const bool isAnew = areNearHalves(d.vectorLanes) && d.pass == taccConvBackwardWeights;
  const double ofLineFromMemory = s.kernelHeight * s.kernelWidth == 1 ? 13 : 30,
               part = bytes / coreModel().lastCacheBytes - 1;
  const double ofLineAnew = isAnew ? (ofLineFromMemory - ofLineOfCache) * std::clamp(part, 0.0, 1.0) : 0;
  const double ofFarLine = hasFarCaches() ? 12 : ofLineOfCache + ofLineAnew, ofNearLine = hasFarCaches() ? 4 : 1;
  if (!groupsCutNhwc(d) || bytes <= bytesOfL1) return 0;
  const double cyclesOfLine = bytes <= static_cast<double>(l2CacheBytes()) ? ofNearLine : ofFarLine;
  // Of a pixel: far caches are asked for all that there may be, near ones for as many as there are in the mean.
  const auto lines = [](int channels) {
    return hasFarCaches() ? ceilDivide(channels, blockLength) + 1.0 : 1 + double(channels - 1) / blockLength;
  };
  return cyclesOfLine * s.groups * s.batch *
         (lines(s.inPerGroup()) * usedPixels(s) + lines(s.outPerGroup()) * s.outHeight * s.outWidth);
}

/// Of gradients of weights in blocks, whose vectors are half of one, for pixels between others that strides leave out:
/// near caches do not have them in time.
inline double nearSkippedCycles(const Description& d) {
  constexpr double ofLine = 16;
  const Shape& s = d.shape;
  const bool skips = s.strideWidth > s.kernelWidth && s.groups == 1 && d.inputLayout == taccLayoutNchw16c;
  if (!skips || staysInL2(static_cast<std::size_t>(touchedBytes(d)))) return 0;
  return ofLine * s.kernelHeight * s.kernelWidth * s.inBlocks() * s.outHeight * s.outWidth * s.batch;
}

/// Whether whole lines of the cache begin where a tensor does, as non-temporal stores want it; plain ones need not.
inline bool isAligned(const float* tensor) { return reinterpret_cast<std::uintptr_t>(tensor) % 64 == 0; }

/// Of the result in blocks, forward or backward to the data.
inline std::size_t resultBytes(const Description& d) {
  const Shape& s = d.shape;
  return sizeof(float) * (d.pass == taccConvForward
                              ? tensorFloats(taccLayoutNchw16c, s.batch, s.outChannels, s.outHeight, s.outWidth)
                              : tensorFloats(taccLayoutNchw16c, s.batch, s.inChannels, s.height, s.width));
}

/// Whether the result, forward or backward to the data, would push itself out of the caches before anybody reads it.
inline bool isNonTemporalResult(const Description& d) {
  return d.isOfLargeResult || layers::isTooLargeForCaches(resultBytes(d));
}

/// The same of products, whose arithmetic hides plain stores on cores whose last cache is near, and not those past it.
inline bool isNonTemporalProduct(const Description& d) {
  return isNonTemporalResult(d) &&
         (d.isOfLargeResult || static_cast<double>(resultBytes(d)) > coreModel().streamedBytes);
}

}  // namespace tacc::conv
