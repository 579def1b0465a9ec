#include "compute/conv/algorithms/weight_pieces.hpp"

#include <algorithm>

#include "compute/conv/cost.hpp"
#include "compute/conv/layout.hpp"
#include "compute/conv/weights.hpp"

namespace tacc::conv {
namespace {

/// Into how many parts of equally many pixels the least is read and written beyond the L2 cache.
double choosePixelParts(const Description& d, double blocks, std::size_t outParts) {
  const auto cacheBytes = static_cast<double>(l2CacheBytes());
  const Shape& s = d.shape;
  const double inBlocks = ceilDivide(s.inPerGroup(), blockLength), outBlocks = ceilDivide(s.outPerGroup(), blockLength);
  const double pixels = double(s.batch) * s.outHeight * s.outWidth;
  // Strides leave out pixels that no tap reads.
  const double usedPixels =
      double(std::min(s.height, s.outHeight * s.kernelHeight)) * std::min(s.width, s.outWidth * s.kernelWidth);
  const double bytesOfNumber = d.pairs.areCompact ? 2 : 4;
  const double inputBytes = inBlocks * blockLength * s.batch * usedPixels * bytesOfNumber;
  const double gradientBytes = outBlocks * blockLength * pixels * bytesOfNumber;
  const auto resultFloats = static_cast<double>(
      weightFloats(taccWeightsBlocked, s.outChannels, s.inChannels, s.kernelHeight, s.kernelWidth, s.groups));
  const double resultBytes = resultFloats / s.groups * 4;
  double best = 0;
  double bestParts = 1;
  for (double parts = 1; parts <= pixels / 48; parts *= 2) {
    const double pairBytes = (inputBytes / inBlocks + blocks * gradientBytes / outBlocks) / parts;
    const bool allFit = (inputBytes + gradientBytes) / parts <= cacheBytes;
    const double passes = pairBytes <= cacheBytes / 2 ? 1 : s.kernelHeight * s.kernelWidth;
    // Those blocks of the gradient that all blocks of the input are multiplied with.
    const bool gradientStays = blocks * gradientBytes / outBlocks / parts <= cacheBytes / 4;
    double traffic =
        allFit ? inputBytes + gradientBytes
               : passes * (inputBytes * static_cast<double>(outParts) + gradientBytes * (gradientStays ? 1 : inBlocks));
    traffic += 2 * resultBytes * (parts - 1);
    // Of one part the result is brought to KCRS from the caches.
    if (parts > 1 && d.weightLayout == taccWeightsKcrs) traffic += 2 * resultBytes;
    if (best == 0 || traffic < best) {
      best = traffic;
      bestParts = parts;
    }
  }
  return bestParts;
}

}  // namespace

std::vector<WeightPiece> cutWeightPieces(const Description& d, double blocks, std::size_t outParts, bool isLastCopied) {
  const Shape& s = d.shape;
  const double ofImage = double(s.outHeight) * s.outWidth;
  const double wanted = ofImage * s.batch / choosePixelParts(d, blocks, outParts);
  const int imagesAtOnce = std::clamp(static_cast<int>(wanted / ofImage), 1, s.batch);
  int linesAtOnce = imagesAtOnce > 1 ? s.outHeight : std::clamp(static_cast<int>(wanted / s.outWidth), 1, s.outHeight);
  // Pairs go from line to line, and none is cut.
  if (d.pairs.areCompact && s.outWidth % 2 != 0) linesAtOnce = std::min(roundUp(linesAtOnce, 2), s.outHeight);
  std::vector<WeightPiece> pieces;
  for (int image = 0; image < s.batch; image += imagesAtOnce) {
    const int images = std::min(imagesAtOnce, s.batch - image);
    for (int line = 0; line < s.outHeight; line += linesAtOnce) {
      pieces.push_back({image, images, line, std::min(s.outHeight, line + linesAtOnce), false});
    }
  }
  if (!isLastCopied) return pieces;
  const WeightPiece last = pieces.back();
  pieces.pop_back();
  const int image = s.batch - 1, line = s.outHeight - 1;
  if (last.images > 1) pieces.push_back({last.image, last.images - 1, last.fromLine, last.toLine, false});
  if (last.fromLine < line) pieces.push_back({image, 1, last.fromLine, line, false});
  pieces.push_back({image, 1, line, line + 1, true});
  return pieces;
}

std::vector<WeightPiece> cutWeightLines(const Shape& s) {
  constexpr std::size_t tenthsOfCache = 3, bytesOfPixel = 3 * blockLength * sizeof(float);
  const auto pixels = static_cast<int>(l2CacheBytes() / 10 * tenthsOfCache / bytesOfPixel);
  const int parts = std::min(s.outHeight, ceilDivide(s.outHeight * s.outWidth, pixels));
  std::vector<WeightPiece> pieces;
  for (int image = 0; image < s.batch; ++image) {
    for (int part = 0, line = 0; part < parts; ++part) {
      const int end = line + partSize(s.outHeight, parts, part);
      pieces.push_back({image, 1, line, end, false});
      line = end;
    }
  }
  return pieces;
}

}  // namespace tacc::conv
