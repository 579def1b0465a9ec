#include "compute/conv/amx/bf16x3_jobs.hpp"

#include <algorithm>

#include "compute/conv/algorithms/caching.hpp"
#include "compute/conv/algorithms/direct_shapes.hpp"
#include "compute/conv/cost.hpp"

namespace tacc::conv {
namespace {

double cyclesOf(const Description& d, const Bf16x3Image& image, const std::vector<Bf16x3Job>& jobs,
                double weightBytes) {
  const SplitSides sides(d);
  const bool isSplit = partsOfNumber(d) == splitParts;
  const double floatCycles = splitRowCycles(static_cast<double>(d.shape.batch * sides.in.image) * sizeof(float));
  const double ofBfloat16 = copiesStrips(d) ? bfloat16RowCycles / 2 : bfloat16RowCycles;
  const double rowCycles = readsInPlace(d) ? 0 : isSplit ? floatCycles : ofBfloat16;
  const double productCycles = isSplit ? 6 * tileProductCycles : bfloat16ProductCycles;
  // A last block of output that is alone reads as much for half of the products.
  const double columns = sides.outBlocks + (sides.outBlocks == 1 ? 0.1 : 0.4 * (sides.outBlocks % 2));
  const double rows = double(image.rows()) * image.phases() * sides.inPairs();
  // What is split first has nothing to hide behind.
  double cycles = rows * rowCycles / 3;
  for (int index = 0; index < image.parts(); ++index) {
    cycles += rows * rowCycles;
    for (const Bf16x3Job& job : jobs) {
      const double tiles = ceilDivide(image.positions(image.part(index), job.outHeight, job.outWidth), tileRows);
      const double steps = static_cast<double>(job.taps.size()) * sides.inPairs();
      cycles += tiles * columns * (steps * productCycles + deliverTileCycles);
    }
  }
  // Weights from behind the L2 cache are read for each part; the first time that hides best.
  if (!staysInL2(static_cast<std::size_t>(weightBytes))) {
    cycles += weightBytes / sides.groups * (image.parts() - 0.5) / bytesInCycle;
  }
  return cycles * sides.groups;
}

SplitTensor inputOf(const Description& d) {
  return {d.inputLayout, d.shape.groups, d.shape.inPerGroup(), d.shape.height, d.shape.width};
}
SplitTensor outputOf(const Description& d) {
  return {d.outputLayout, d.shape.groups, d.shape.outPerGroup(), d.shape.outHeight, d.shape.outWidth};
}

}  // namespace

int groupsJoined(const Description& d) {
  constexpr int channelsOfStep = 2 * blockLength;
  const Shape& s = d.shape;
  if (!d.pairs.areRead || s.groups == 1 || s.isDepthwise() || d.pass == taccConvBackwardWeights) return 1;
  const int in = s.inPerGroup(), out = s.outPerGroup();
  const auto areBlocks = [&](int count) {
    return s.groups % count == 0 && count * in % blockLength == 0 && count * out % blockLength == 0;
  };
  int best = 1;
  for (int count = 2; count * std::max(in, out) <= channelsOfStep; ++count) best = areBlocks(count) ? count : best;
  // Others only where they would not be served.
  for (int count = 2; best == 1 && !s.blocksFitGroups() && count <= s.groups; ++count)
    best = areBlocks(count) ? count : 1;
  return best;
}

Description withJoinedGroups(const Description& d) {
  Description joined = d;
  joined.shape.groups /= groupsJoined(d);
  return joined;
}

int partsOfNumber(const Description& d) { return d.pairs.areRead ? 1 : splitParts; }

double splitRowCycles(double bytes) { return bytes > static_cast<double>(l2CacheBytes()) ? 28 : 20; }

SplitTensor::SplitTensor(taccLayout_t layout, int groups, int channelsOfGroup, int height, int width) {
  const int blocks = ceilDivide(channelsOfGroup, blockLength);
  const std::ptrdiff_t pixels = std::ptrdiff_t{height} * width;
  const bool isNhwc = layout == taccLayoutNhwc;
  pixel = isNhwc ? std::ptrdiff_t{groups} * channelsOfGroup : blockLength;
  block = isNhwc ? blockLength : pixels * blockLength;
  group = isNhwc ? channelsOfGroup : blocks * block;
  line = width * pixel;
  image = isNhwc ? pixels * pixel : groups * group;
  // Blocks are whole in memory.
  const int ofLast = channelsOfGroup - (blocks - 1) * blockLength;
  lastMask = static_cast<std::uint16_t>(isNhwc ? (1U << ofLast) - 1 : 0xFFFFU);
}

SplitSides::SplitSides(const Description& d)
    : isForward(d.pass == taccConvForward),
      groups(d.shape.groups),
      inBlocks(ceilDivide(isForward ? d.shape.inPerGroup() : d.shape.outPerGroup(), blockLength)),
      outBlocks(ceilDivide(isForward ? d.shape.outPerGroup() : d.shape.inPerGroup(), blockLength)),
      height(isForward ? d.shape.height : d.shape.outHeight),
      width(isForward ? d.shape.width : d.shape.outWidth),
      in(isForward ? inputOf(d) : outputOf(d)),
      out(isForward ? outputOf(d) : inputOf(d)),
      strideHeight(isForward ? d.shape.strideHeight : 1),
      strideWidth(isForward ? d.shape.strideWidth : 1) {
  if (!readsLines(d)) return;
  const int numbers = d.shape.kernelWidth * d.shape.inChannels;
  inBlocks = ceilDivide(numbers, blockLength);
  in.lastMask = static_cast<std::uint16_t>((1U << (numbers - (inBlocks - 1) * blockLength)) - 1);
  in.pixel *= strideWidth;  // from row to row
  width = d.shape.outWidth;
  strideWidth = 1;
}

bool canSplit(const Description& d) {
  const auto isServed = [](taccLayout_t layout) { return layout == taccLayoutNchw16c || layout == taccLayoutNhwc; };
  // Positions of a part are counted in int.
  constexpr int widest = 1 << 20;
  const Shape& s = d.shape;
  return d.splits && isServed(d.inputLayout) && isServed(d.outputLayout) && d.pairs.areRead == d.pairs.areWritten &&
         s.blocksFitGroups() && s.width <= widest && s.outWidth <= widest && s.padWidth <= widest;
}

bool readsLines(const Description& d) {
  constexpr int channelsOfStep = 2 * blockLength;
  const Shape& s = d.shape;
  const int numbers = s.kernelWidth * s.inChannels;
  return d.pass == taccConvForward && d.inputLayout == taccLayoutNhwc && s.groups == 1 && s.dilationWidth == 1 &&
         s.inChannels <= blockLength && numbers <= lanesOfRun && ceilDivide(numbers, channelsOfStep) < s.kernelWidth;
}

bool readsInPlace(const Description& d) {
  const SplitSides sides(d);
  const int channels = sides.isForward ? d.shape.inPerGroup() : d.shape.outPerGroup();
  const bool areWhole = sides.in.block == blockLength && channels % (2 * blockLength) == 0;
  const bool isBlock = sides.in.pixel == blockLength && sides.inBlocks == 1 && sides.groups == 1;
  return partsOfNumber(d) == 1 && d.shape.isProduct() && (areWhole || isBlock);
}

bool copiesStrips(const Description& d) {
  if (partsOfNumber(d) != 1 || !d.shape.isProduct() || readsInPlace(d)) return false;
  const SplitSides sides(d);
  const double weights = double(sides.groups) * sides.inPairs() * sides.outBlocks * static_cast<double>(tileBytes);
  return staysInL2(static_cast<std::size_t>(weights));
}

bool writesNonTemporally(const Description& d) {
  const SplitSides sides(d);
  if (partsOfNumber(d) == splitParts) return sides.out.pixel == blockLength && isNonTemporalResult(d);
  return layers::isTooLargeForCaches(static_cast<std::size_t>(d.shape.batch * sides.out.image) * sizeof(std::uint16_t));
}

std::vector<Bf16x3Job> splitJobs(const Description& d) {
  const Shape& s = d.shape;
  const std::ptrdiff_t pixel = SplitSides(d).out.pixel;
  std::vector<Bf16x3Job> jobs;
  if (d.pass == taccConvForward) {
    Bf16x3Job job{0, s.outHeight, s.outWidth, s.outWidth * pixel, pixel, {}, {}};
    for (int r = 0; r < s.kernelHeight; ++r) {
      if (readsLines(d)) {
        job.taps.push_back({r * s.dilationHeight - s.padHeight, 0});
        job.kernelTaps.push_back(r);
        continue;
      }
      for (int t = 0; t < s.kernelWidth; ++t) {
        job.taps.push_back({r * s.dilationHeight - s.padHeight, t * s.dilationWidth - s.padWidth});
        job.kernelTaps.push_back(r * s.kernelWidth + t);
      }
    }
    jobs.push_back(std::move(job));
    return jobs;
  }
  Shape one = s;
  one.batch = 1;  // many images of one pixel would come as one line
  for (BackwardPhase& phase : backwardPhases(one)) {
    const DirectShape& c = phase.driver;
    const bool isLine = s.isProduct();  // it comes as one long line
    const auto placeOf = [pixel](std::ptrdiff_t ofBlocks) { return ofBlocks / blockLength * pixel; };
    jobs.push_back({placeOf(phase.output), isLine ? s.height : c.outHeight, isLine ? s.width : c.outWidth,
                    isLine ? s.width * pixel : placeOf(c.outLine), placeOf(c.outPixel), c.taps, std::move(phase.taps)});
  }
  return jobs;
}

double splitWeightBytes(const Description& d, const std::vector<Bf16x3Job>& jobs) {
  const SplitSides sides(d);
  double taps = 0;
  for (const Bf16x3Job& job : jobs) taps += static_cast<double>(job.taps.size());
  return taps * sides.groups * sides.inPairs() * sides.outBlocks * partsOfNumber(d) * static_cast<double>(tileBytes);
}

Bf16x3Image uncutSplitImage(const Description& d, const std::vector<Bf16x3Job>& jobs) {
  const SplitSides sides(d);
  std::vector<Tap> taps;
  int outHeight = 1, outWidth = 1;
  for (const Bf16x3Job& job : jobs) {
    taps.insert(taps.end(), job.taps.begin(), job.taps.end());
    outHeight = std::max(outHeight, job.outHeight);
    outWidth = std::max(outWidth, job.outWidth);
  }
  return Bf16x3Image(2 * sides.inPairs() * sides.groups, partsOfNumber(d), sides.height, sides.width,
                     sides.strideHeight, sides.strideWidth, outHeight, outWidth, taps);
}

Bf16x3Image splitImage(const Description& d, const std::vector<Bf16x3Job>& jobs) {
  Bf16x3Image image = uncutSplitImage(d, jobs);
  // Few parts cost the splitting of the first one, which nothing hides; many parts the rest of their last tiles, and
  // weights that are read from behind the L2 cache over again.
  const double weightBytes = splitWeightBytes(d, jobs);
  if (copiesStrips(d) || (readsInPlace(d) && staysInL2(static_cast<std::size_t>(weightBytes)))) {
    // Each strip is read once for all outputs, so nothing is gained by parts; a table has a place for each row of one.
    constexpr std::size_t rows = 1 << 15;
    image.choosePart(d.shape.batch,
                     rows * static_cast<std::size_t>(SplitSides(d).inPairs() * d.shape.groups * rowBytes));
    return image;
  }
  double best = 0;
  std::size_t bestBytes = 0;
  for (std::size_t bytes = l2CacheBytes() / 32; bytes <= l2CacheBytes() * 3 / 8; bytes = bytes * 5 / 4) {
    image.choosePart(d.shape.batch, bytes);
    const double cycles = cyclesOf(d, image, jobs, weightBytes);
    if (best != 0 && cycles >= best) continue;
    best = cycles;
    bestBytes = bytes;
  }
  image.choosePart(d.shape.batch, bestBytes);
  return image;
}

double splitCycles(const Description& d, const Bf16x3Image& image, const std::vector<Bf16x3Job>& jobs) {
  return cyclesOf(d, image, jobs, splitWeightBytes(d, jobs));
}

}  // namespace tacc::conv
