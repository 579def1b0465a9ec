// Winograd's convolution for 3x3 kernels of stride 1, forward and backward to the input.
//
// Tiles of m x m outputs, m = 2, 4, 5 or 6, are computed from (m + 2) x (m + 2) inputs with one product for each of
// these, where the definition needs nine for each output: 16 for 36, 36 for 144, 49 for 225, or 64 for 324. What is
// left is, for each of the (m + 2)^2 points, a product of matrices over the channels; its pixels are the tiles, so the
// tile kernel does it. Which m is best follows from what is wasted at the ends of lines, where tiles go beyond the
// image.
#include <algorithm>
#include <array>

#include "compute/conv/algorithms.hpp"
#include "compute/conv/algorithms/caching.hpp"
#include "compute/conv/task_partition.hpp"
#include "compute/conv/weights.hpp"

namespace tacc::conv {
namespace {

/// The transform of a kernel's line: m + 2 values from three.
std::array<float, 8> transformLine(int outputs, float a, float b, float c) {
  if (outputs == 2) return {a, (a + b + c) / 2, (a - b + c) / 2, c};
  if (outputs == 5) {
    return {-a / 2,
            -(a + b + c) / 3,
            (a - b + c) / 9,
            (a + 2 * b + 4 * c) / 36,
            -(a - 2 * b + 4 * c) / 60,
            (4 * a + 2 * b + c) * (8.0F / 45),
            c};
  }
  if (outputs == 6) {
    return {a,
            (a + b + c) * (-2.0F / 9),
            (a - b + c) * (-2.0F / 9),
            (a + 2 * b + 4 * c) / 90,
            (a - 2 * b + 4 * c) / 90,
            (4 * a + 2 * b + c) * (8.0F / 45),
            (4 * a - 2 * b + c) * (8.0F / 45),
            c};
  }
  return {a / 4, -(a + b + c) / 6, -(a - b + c) / 6, (a / 4 + b / 2 + c) / 6, (a / 4 - b / 2 + c) / 6, c};
}

/// The convolution in terms of what is read: forward the input, backward the output's gradient, with the kernel turned
/// round and the channels exchanged.
struct Geometry {
  explicit Geometry(const Description& d) {
    const Shape& s = d.shape;
    const bool isForward = d.pass == taccConvForward;
    inChannels = isForward ? s.inChannels : s.outChannels;
    outChannels = isForward ? s.outChannels : s.inChannels;
    height = isForward ? s.height : s.outHeight;
    width = isForward ? s.width : s.outWidth;
    outHeight = isForward ? s.outHeight : s.height;
    outWidth = isForward ? s.outWidth : s.width;
    padHeight = isForward ? s.padHeight : 2 - s.padHeight;
    padWidth = isForward ? s.padWidth : 2 - s.padWidth;
  }
  int inChannels, outChannels, height, width, outHeight, outWidth, padHeight, padWidth;
  int inBlocks() const { return ceilDivide(inChannels, blockLength); }
  int outBlocks() const { return ceilDivide(outChannels, blockLength); }
  std::ptrdiff_t inPlane() const { return std::ptrdiff_t{height} * width * blockLength; }
  std::ptrdiff_t outPlane() const { return std::ptrdiff_t{outHeight} * outWidth * blockLength; }
};

/// More bytes of weights than this probably come from memory in every run.
constexpr std::int64_t memoryWeightBytes = 16 * 1024 * 1024;

/// Tiles that are transformed and multiplied together.
struct TileBlocks {
  int perLine, perImage;
  std::int64_t all;
  int atOnce;
};

TileBlocks tileBlocks(const Description& d, int outputs) {
  const Geometry g(d);
  TileBlocks t{};
  t.perLine = ceilDivide(g.outWidth, outputs);
  t.perImage = t.perLine * ceilDivide(g.outHeight, outputs);
  t.all = std::int64_t{t.perImage} * d.shape.batch;
  // Their transforms should stay near the L2 cache; but the weights are read once for all of them, and many weights
  // come from memory.
  const std::int64_t points = std::int64_t{outputs + 2} * (outputs + 2);
  const std::int64_t bytesOfTile = points * (g.inBlocks() + g.outBlocks()) * blockLength * 4;
  const std::int64_t weightBytes = points * g.inBlocks() * g.outBlocks() * blockLength * blockLength * 4;
  constexpr std::int64_t mebibyte = 1024 * 1024;
  const std::int64_t cacheBytes = (weightBytes > memoryWeightBytes ? 24 : 2) * mebibyte;
  const std::int64_t most = std::clamp<std::int64_t>(cacheBytes / bytesOfTile, 28, 168);
  const std::int64_t parts = (t.all + most - 1) / most;
  t.atOnce = static_cast<int>((t.all + parts - 1) / parts);
  return t;
}

DirectShape products(const Description& d, const TileBlocks& tiles) {
  const Geometry g(d);
  DirectShape c{};
  for (int left = g.inChannels; left > 0; left -= blockLength) c.inCounts.push_back(std::min(left, blockLength));
  c.inHeight = c.outHeight = 1;
  c.inWidth = c.outWidth = tiles.atOnce;
  c.inPixel = c.outPixel = blockLength;
  c.inLine = c.outLine = c.inPlane = c.outPlane = std::ptrdiff_t{tiles.atOnce} * blockLength;
  c.outBlocks = g.outBlocks();
  c.strideHeight = c.strideWidth = 1;
  c.taps = {{0, 0}};
  return c;
}

class WinogradPlan final : public ConvPlan {
 public:
  WinogradPlan(const Description& d, const KernelSet& kernels, int outputs, const TileBlocks& tiles,
               DirectDriver driver)
      : ConvPlan(std::string(kernels.vectors) + " " + driver.tileName()),
        description_(d),
        geometry_(d),
        kernels_(kernels),
        outputs_(outputs),
        tiles_(tiles),
        driver_(std::move(driver)),
        isNonTemporal_(isNonTemporalResult(d)) {}

  std::size_t workspaceBytes() const override {
    return biasWorkspaceBytes(description_) +
           static_cast<std::size_t>(description_.maxWorkers) * scratchFloats() * sizeof(float);
  }
  std::size_t packedFloats() const override { return driver_.packedFloats() * static_cast<std::size_t>(points()); }
  double predictedSeconds() const override {
    const double blocks = double(tiles_.all) / tiles_.atOnce;
    const double vectors = double(geometry_.inBlocks() + geometry_.outBlocks()) * blockLength / kernels_.fmaLanes;
    return (blocks * driver_.cycles() * points() + double(tiles_.all) * vectors * points() * 8) / assumedHertz;
  }

  void pack(const float* weights, float* packed) const override;
  void run(const Buffers& buffers, const TaskExecutor& executor) const override;

 private:
  int side() const { return outputs_ + 2; }
  int points() const { return side() * side(); }
  /// Floats from point to point of transformed tiles: an odd number of the cache's lines, so that the points of a tile,
  /// which are written and read together, do not fall on each other in the L1 cache.
  std::size_t pointFloats(int blocks) const {
    return (static_cast<std::size_t>(blocks) * static_cast<std::size_t>(tiles_.atOnce) | 1) * blockLength;
  }
  std::size_t inFloats() const { return static_cast<std::size_t>(points()) * pointFloats(geometry_.inBlocks()); }
  std::size_t outFloats() const { return static_cast<std::size_t>(points()) * pointFloats(geometry_.outBlocks()); }
  std::size_t scratchFloats() const { return inFloats() + outFloats(); }

  struct Place {
    std::ptrdiff_t image;
    int y, x;  // of the first output
  };
  Place placeOf(std::int64_t tile) const {
    const auto inImage = static_cast<int>(tile % tiles_.perImage);
    return {static_cast<std::ptrdiff_t>(tile / tiles_.perImage), inImage / tiles_.perLine * outputs_,
            inImage % tiles_.perLine * outputs_};
  }
  /// Calls visit(place, tiles, index of the first) for the tiles [first, first + count), those of a line together.
  template <class Visit>
  void forEachLine(std::int64_t first, int count, const Visit& visit) const {
    for (int at = 0; at < count;) {
      const auto inLine = static_cast<int>((first + at) % tiles_.perLine);
      const int tiles = std::min(tiles_.perLine - inLine, count - at);
      visit(placeOf(first + at), tiles, at);
      at += tiles;
    }
  }
  void transformInput(const float* input, std::int64_t first, int count, float* to) const;
  void transformOutput(const Buffers& buffers, const float* bias, const float* from, std::int64_t first,
                       int count) const;
  struct Image {
    const float* tensor;
    int blocks, height, width;
  };
  [[gnu::always_inline]] void fetch(const Image& image, std::int64_t first, int count, std::size_t part,
                                    std::size_t parts) const;

  Description description_;
  Geometry geometry_;
  const KernelSet& kernels_;
  int outputs_;
  TileBlocks tiles_;
  DirectDriver driver_;
  bool isNonTemporal_;  // the result: it would push itself out of the caches before anybody reads it
};

void WinogradPlan::pack(const float* weights, float* packed) const {
  const bool isForward = description_.pass == taccConvForward;
  /// One vector of output channels for one input channel: all nine taps, transformed to all points.
  const auto transform = [&](float* to, std::size_t pointStep, int outBlock, int inBlock, int value) {
    float taps[3][3][blockLength];
    for (int r = 0; r < 3; ++r) {
      for (int s = 0; s < 3; ++s) {
        const WeightBlock block =
            isForward ? weightBlock(description_.shape, description_.weightLayout, 0, outBlock, inBlock, r, s)
                      : weightBlock(description_.shape, description_.weightLayout, 0, inBlock, outBlock, 2 - r, 2 - s);
        const std::ptrdiff_t valueStep = isForward ? block.inStep : block.outStep;
        const std::ptrdiff_t laneStep = isForward ? block.outStep : block.inStep;
        const int lanes = isForward ? block.outs : block.ins;
        for (int k = 0; k < blockLength; ++k) {
          taps[r][s][k] = k < lanes ? weights[block.base + value * valueStep + k * laneStep] : 0.0F;
        }
      }
    }
    for (int k = 0; k < blockLength; ++k) {
      std::array<float, 8> columns[3];
      for (int s = 0; s < 3; ++s) columns[s] = transformLine(outputs_, taps[0][s][k], taps[1][s][k], taps[2][s][k]);
      for (int y = 0; y < side(); ++y) {
        const auto row = static_cast<std::size_t>(y);
        const auto line = transformLine(outputs_, columns[0][row], columns[1][row], columns[2][row]);
        for (int x = 0; x < side(); ++x)
          to[static_cast<std::size_t>(y * side() + x) * pointStep + static_cast<std::size_t>(k)] =
              line[static_cast<std::size_t>(x)];
      }
    }
  };
  driver_.pack(packed, [&](float* to, int outBlock, int inBlock, int, int value) {
    transform(to, driver_.packedFloats(), outBlock, inBlock, value);
  });
}

void WinogradPlan::transformInput(const float* input, std::int64_t first, int count, float* to) const {
  const Geometry& g = geometry_;
  const std::ptrdiff_t plane = std::ptrdiff_t{tiles_.atOnce} * blockLength;
  WinogradInputCall call{};
  call.inputLine = std::ptrdiff_t{g.width} * blockLength;
  call.height = g.height;
  call.width = g.width;
  call.outputPoint = static_cast<std::ptrdiff_t>(pointFloats(g.inBlocks()));
  for (int block = 0; block < g.inBlocks(); ++block) {
    forEachLine(first, count, [&](Place place, int tiles, int at) {
      call.input = input + (place.image * g.inBlocks() + block) * g.inPlane();
      call.y = place.y - g.padHeight;
      call.x = place.x - g.padWidth;
      call.tiles = tiles;
      call.output = to + block * plane + std::ptrdiff_t{at} * blockLength;
      kernels_.winogradInput[outputs_](call);
    });
  }
}

void WinogradPlan::transformOutput(const Buffers& buffers, const float* bias, const float* from, std::int64_t first,
                                   int count) const {
  const Geometry& g = geometry_;
  const std::ptrdiff_t plane = std::ptrdiff_t{tiles_.atOnce} * blockLength;
  const float* const addend = description_.residual     ? buffers.residual
                              : description_.accumulate ? buffers.result
                                                        : nullptr;
  WinogradOutputCall call{};
  call.inputPoint = static_cast<std::ptrdiff_t>(pointFloats(g.outBlocks()));
  call.outputLine = std::ptrdiff_t{g.outWidth} * blockLength;
  call.activation = description_.activation;
  call.isNonTemporal = isNonTemporal_;
  for (int block = 0; block < g.outBlocks(); ++block) {
    call.bias = bias != nullptr ? bias + block * blockLength : nullptr;
    forEachLine(first, count, [&](Place place, int tiles, int at) {
      const std::ptrdiff_t pixel = (place.image * g.outBlocks() + block) * g.outPlane() +
                                   (std::ptrdiff_t{place.y} * g.outWidth + place.x) * blockLength;
      call.input = from + block * plane + std::ptrdiff_t{at} * blockLength;
      call.addend = addend != nullptr ? addend + pixel : nullptr;
      call.output = buffers.result + pixel;
      call.lines = g.outHeight - place.y;
      call.pixels = g.outWidth - place.x;
      call.tiles = tiles;
      kernels_.winogradOutput[outputs_](call);
    });
  }
}

/// Brings a part of what the tiles cover of a tensor into the L2 cache: an image's planes and lines are too far
/// from each other for the hardware to look ahead. It is inlined: to GCC, a function of nothing but prefetches does
/// nothing.
inline void WinogradPlan::fetch(const Image& image, std::int64_t first, int count, std::size_t part,
                                std::size_t parts) const {
  const auto [from, to] = partOf(static_cast<std::size_t>(count) * static_cast<std::size_t>(image.blocks), parts, part);
  const std::ptrdiff_t planeFloats = std::ptrdiff_t{image.height} * image.width * blockLength;
  for (std::size_t i = from; i < to; ++i) {
    const auto block = static_cast<std::ptrdiff_t>(i / static_cast<std::size_t>(count));
    const Place place = placeOf(first + static_cast<std::int64_t>(i % static_cast<std::size_t>(count)));
    const float* const plane = image.tensor + (place.image * image.blocks + block) * planeFloats;
    // What tiles share belongs to the one before.
    for (int y = place.y; y < std::min(place.y + outputs_, image.height); ++y) {
      for (int x = place.x; x < std::min(place.x + outputs_, image.width); ++x) {
        __builtin_prefetch(plane + (std::ptrdiff_t{y} * image.width + x) * blockLength, 0, 2);
      }
    }
  }
}

void WinogradPlan::run(const Buffers& buffers, const TaskExecutor& executor) const {
  const float* const bias = paddedBias(description_, buffers);
  float* const workspace = static_cast<float*>(buffers.workspace) + biasWorkspaceBytes(description_) / sizeof(float);
  const float* const input = description_.pass == taccConvForward ? buffers.input : buffers.outputGradient;
  const auto parts = static_cast<std::size_t>((tiles_.all + tiles_.atOnce - 1) / tiles_.atOnce);
  const std::size_t groups = driver_.groups().size();
  const Image source = {input, geometry_.inBlocks(), geometry_.height, geometry_.width};
  const Image target = {buffers.result, geometry_.outBlocks(), geometry_.outHeight, geometry_.outWidth};
  const float* const packedEnd = buffers.packedWeights + packedFloats();
  const int firstFetch = points() * 2 / 3;  // earlier, and it would be pushed out of the cache again
  executor.forEach(parts, [&](std::size_t part, int worker) {
    float* const in = workspace + static_cast<std::size_t>(worker) * scratchFloats();
    float* const out = in + inFloats();
    const auto tilesOf = [&](std::int64_t first) {
      return static_cast<int>(std::clamp<std::int64_t>(tiles_.all - first, 0, tiles_.atOnce));
    };
    const std::int64_t first = static_cast<std::int64_t>(part) * tiles_.atOnce;
    const std::int64_t next = first + tiles_.atOnce;
    const auto fetchSince = [&](int firstPoint, const Image& image, std::int64_t tile, int point, std::size_t group)
        __attribute__((always_inline)) {
      if (point < firstPoint) return;
      fetch(image, tile, tilesOf(tile), static_cast<std::size_t>(point - firstPoint) * groups + group,
            static_cast<std::size_t>(points() - firstPoint) * groups);
    };
    transformInput(input, first, tilesOf(first), in);
    for (int point = 0; point < points(); ++point) {
      const auto at = static_cast<std::size_t>(point);
      for (std::size_t group = 0; group < groups; ++group) {
        // Places beyond the last tile are computed from what is there, and nobody looks at them.
        driver_.run({.input = in + pointFloats(geometry_.inBlocks()) * at,
                     .packed = buffers.packedWeights + driver_.packedFloats() * at,
                     .bias = nullptr,
                     .addend = nullptr,
                     .output = out + pointFloats(geometry_.outBlocks()) * at,
                     .images = 1,
                     .inImage = 0,
                     .outImage = 0,
                     .firstTile = 0,
                     .endTile = driver_.tiles(),
                     .firstGroup = group,
                     .endGroup = group + 1,
                     .activation = taccActivationNone,
                     .weightsEnd = packedEnd});  // they are read once for all these tiles
        // Meanwhile, what probably the same worker transforms next, and, shortly before it is written, the result.
        fetchSince(firstFetch, source, next, point, group);
        if (!isNonTemporal_) fetchSince(points() - points() / 8, target, first, point, group);
      }
    }
    transformOutput(buffers, bias, out, first, tilesOf(first));
  });
}

/// Where it may be used at all: when it was asked for.
bool canServe(const Description& d, const char* name) {
  const Shape& s = d.shape;
  return d.pass != taccConvBackwardWeights && d.inputLayout == taccLayoutNchw16c && s.groups == 1 &&
         s.kernelHeight == 3 && s.kernelWidth == 3 && s.strideHeight == 1 && s.strideWidth == 1 &&
         s.dilationHeight == 1 && s.dilationWidth == 1 && s.padHeight <= 2 && s.padWidth <= 2 &&
         (d.winograd || d.algorithm == name);
}

/// Time for an output in terms of one product for each input channel: products, those too that are wasted where tiles
/// go beyond the image, transforms, and the reading of the weights, which hides behind the products of enough tiles.
double costOfOutput(const Description& d, int outputs) {
  const Geometry g(d);
  const TileBlocks t = tileBlocks(d, outputs);
  const double points = (outputs + 2.0) * (outputs + 2);
  const double products = points * double(t.all) / (double(d.shape.batch) * g.outHeight * g.outWidth);
  const double transforms = 10.0 * (1.0 / g.inChannels + 1.0 / g.outChannels);
  const double weightBytes = points * g.inChannels * g.outChannels * sizeof(float);
  // Those that fill the cache and are read over again are pushed out of it at times; strips of tiles are short then.
  const bool fillCache = weightBytes > memoryWeightBytes * 7.0 / 8 && t.atOnce < t.all;
  const double tilesToHideFew = d.hasTwoWideUnits ? 8 : 4;
  const double tilesToHideWeights = weightBytes > memoryWeightBytes ? 10 : fillCache ? 31 : tilesToHideFew;
  return products * (transforms + std::max(1.0, tilesToHideWeights / t.atOnce));
}

/// The tile that costs least. Of those that cost the same the smaller one, which has fewer weights and rounds less.
int bestOutputs(const Description& d) {
  int best = 2;
  for (const int outputs : {4, 5, 6}) {
    if (costOfOutput(d, outputs) < 0.99 * costOfOutput(d, best)) best = outputs;
  }
  return best;
}

bool isWorthwhile(const Description& d, int outputs) {
  const double direct =
      d.splits ? 9 / 1.5 : 9;  // a little less where there is padding; products on AMX's tiles are quicker
  return outputs == bestOutputs(d) && costOfOutput(d, outputs) < 0.8 * direct;
}

std::unique_ptr<ConvPlan> make(const Description& d, const KernelSet& kernels, int outputs) {
  const TileBlocks tiles = tileBlocks(d, outputs);
  return std::make_unique<WinogradPlan>(d, kernels, outputs, tiles, DirectDriver(products(d, tiles), kernels));
}

}  // namespace

bool servesWinogradTwo(const Description& d) {
  return canServe(d, "winograd-2x2") && (!d.algorithm.empty() || isWorthwhile(d, 2));
}
bool servesWinogradFour(const Description& d) {
  return canServe(d, "winograd-4x4") && (!d.algorithm.empty() || isWorthwhile(d, 4));
}
bool servesWinogradFive(const Description& d) {
  return canServe(d, "winograd-5x5") && (!d.algorithm.empty() || isWorthwhile(d, 5));
}
bool servesWinogradSix(const Description& d) {
  return canServe(d, "winograd-6x6") && (!d.algorithm.empty() || isWorthwhile(d, 6));
}
std::unique_ptr<ConvPlan> makeWinogradTwo(const Description& d, const KernelSet& kernels) {
  return make(d, kernels, 2);
}
std::unique_ptr<ConvPlan> makeWinogradFour(const Description& d, const KernelSet& kernels) {
  return make(d, kernels, 4);
}
std::unique_ptr<ConvPlan> makeWinogradFive(const Description& d, const KernelSet& kernels) {
  return make(d, kernels, 5);
}
std::unique_ptr<ConvPlan> makeWinogradSix(const Description& d, const KernelSet& kernels) {
  return make(d, kernels, 6);
}

}  // namespace tacc::conv
