// A channel-wise convolution and the 1x1 one behind it in one pass: some lines of the first one's results, all
// channels, lie in a part of the L2 cache while the product reads them. Where images are small, several lie there
// whole.
#include <fmt/format.h>

#include <algorithm>

#include "compute/conv/algorithms/caching.hpp"
#include "compute/conv/algorithms/depthwise.hpp"
#include "compute/conv/algorithms/direct_driver.hpp"
#include "compute/conv/algorithms/direct_shapes.hpp"
#include "compute/conv/chain.hpp"
#include "compute/conv/cost.hpp"
#include "compute/conv/weights.hpp"

namespace tacc::conv {
namespace {

/// Of what is between them: the input's lines, the weights and results need the rest of the L2 cache.
std::size_t bytesAtOnce() { return l2CacheBytes() / 3; }
/// What beginning over and over costs: from the caches, whose latency the kernels hide, one convolution behind the
/// other is as fast. And bytes of the input a cycle that memory gives, of which the product hides what it can.
constexpr double costOfParts = 1.01, bytesOfMemory = 10;
/// Pixels that weights are read for at least, where there are as many.
constexpr std::size_t pixelsWanted = 196;

/// Some lines of an image, or images.
struct ImagePart {
  std::size_t image, images;
  TaskPart lines;
};

/// How a batch is cut: parts of an image, or whole images.
struct ChainParts {
  std::size_t images = 1, ofImage = 1;  // images of a part; parts of an image
  std::size_t mostLines = 0;            // of a part

  ChainParts(const Description& first) {
    const Shape& s = first.shape;
    const auto batch = static_cast<std::size_t>(s.batch), height = static_cast<std::size_t>(s.outHeight);
    const std::size_t line =
        static_cast<std::size_t>(s.outBlocks()) * static_cast<std::size_t>(s.outWidth) * blockLength * sizeof(float);
    const std::size_t lines = std::clamp<std::size_t>(bytesAtOnce() / line, 1, height);
    ofImage = (height + lines - 1) / lines;
    if (ofImage == 1) {
      const std::size_t pixels = height * static_cast<std::size_t>(s.outWidth);
      const std::size_t most = std::min(batch, std::max<std::size_t>(1, bytesAtOnce() / (line * height)));
      images = std::clamp<std::size_t>((pixelsWanted + pixels - 1) / pixels, 1, most);
    }
    const auto workers = static_cast<std::size_t>(first.maxWorkers);
    if (workers > 1 && batch / images * ofImage < 4 * workers) {
      images = std::clamp<std::size_t>(batch / (4 * workers), 1, images);
      ofImage = std::clamp<std::size_t>((4 * workers + batch - 1) / batch, ofImage, height);
      if (ofImage > 1) images = 1;
    }
    mostLines = (height + ofImage - 1) / ofImage;
  }

  std::size_t count(int batch) const { return (static_cast<std::size_t>(batch) + images - 1) / images * ofImage; }
  ImagePart part(std::size_t index, int batch, int height) const {
    const std::size_t image = index / ofImage * images;
    return {image, std::min(images, static_cast<std::size_t>(batch) - image),
            partOf(static_cast<std::size_t>(height), ofImage, index % ofImage)};
  }
};

/// The product as the driver sees it: whole images as a line of pixels, or parts of one, whose tiles end with lines.
DirectShape productShape(const Chain& chain, const ChainParts& parts) {
  Shape ofOne = chain.second.shape;
  ofOne.batch = 1;
  DirectShape shape = forwardShape(ofOne, taccLayoutNchw16c, chain.second.outputLayout);
  if (parts.ofImage == 1) return shape;
  shape.inHeight = shape.outHeight = ofOne.height;
  shape.inWidth = shape.outWidth = ofOne.width;
  shape.inLine = shape.inWidth * shape.inPixel;
  shape.inPlane = static_cast<std::ptrdiff_t>(parts.mostLines) * shape.inLine;
  shape.outLine = shape.outWidth * shape.outPixel;
  return shape;
}

class DepthwiseProduct final : public ChainPlan {
 public:
  DepthwiseProduct(const Chain& chain, const KernelSet& kernels, std::unique_ptr<LinesPlan> lines, ChainParts parts,
                   DirectDriver driver)
      : ChainPlan(fmt::format("{} {}", kernels.vectors, driver.tileName()), chain),
        lines_(std::move(lines)),
        parts_(parts),
        driver_(std::move(driver)),
        weights_(placeWeights(chain.first, lines_->packedFloats(), driver_.packedFloats())),
        isNonTemporal_(isNonTemporalResult(chain.second)) {}

  std::size_t workspaceBytes() const override {
    return biasWorkspaceBytes(chain().second) +
           static_cast<std::size_t>(chain().second.maxWorkers) * floatsOfWorker() * sizeof(float);
  }
  std::size_t packedFloats() const override { return weights_.all; }
  double predictedSeconds() const override {
    const Description& first = chain().first;
    const Shape& s = first.shape;
    const double bytes =
        static_cast<double>(tensorFloats(first.inputLayout, s.batch, s.inChannels, s.height, s.width) * sizeof(float));
    // The product hides what memory makes wait for, and not the third cache's transfer, which no fetch makes shorter.
    constexpr double hidden = 1e9;
    const double lines = std::max(lines_->secondsOfLines(), transferCycles(bytes, hidden) / assumedHertz);
    const double computed = lines + driver_.cycles() * second().batch / assumedHertz;
    return std::max(costOfParts * computed, transferCycles(bytes, bytesOfMemory) / assumedHertz);
  }

  void packBoth(const float* firstWeights, const float* firstBias, const float* secondWeights,
                float* packed) const override {
    lines_->pack(firstWeights, packed);
    packChainBias(chain().first, firstBias, packed + weights_.bias);
    driver_.pack(packed + weights_.second, [&](float* to, int outBlock, int inBlock, int, int value) {
      const WeightBlock block = weightBlock(second(), chain().second.weightLayout, 0, outBlock, inBlock, 0, 0);
      packValue(to, value, block.ins, false, [&](int in, int out) {
        return out < block.outs ? secondWeights[block.base + in * block.inStep + out * block.outStep] : 0.0F;
      });
    });
  }

  void run(const Buffers& buffers, const TaskExecutor& executor) const override {
    const float* const bias = paddedBias(chain().second, buffers);
    float* const floats = static_cast<float*>(buffers.workspace) + biasWorkspaceBytes(chain().second) / sizeof(float);
    const BlockSteps out =
        blockSteps(chain().second.outputLayout, second().outChannels, second().outHeight, second().outWidth);
    const bool isNonTemporal = isNonTemporal_ && isAligned(buffers.result);
    const float* const firstBias = chain().first.bias ? buffers.packedWeights + weights_.bias : nullptr;
    const std::size_t parts = parts_.count(second().batch);
    executor.forEach(tasks(), [&](std::size_t index, int worker) {
      float* const between = floats + static_cast<std::size_t>(worker) * floatsOfWorker();
      const TaskPart some = partOf(parts, tasks(), index);
      for (std::size_t part = some.from; part < some.to; ++part) {
        const ImagePart here = parts_.part(part, second().batch, second().height);
        for (std::size_t i = 0; i < here.images; ++i) {
          lines_->runLines(buffers, firstBias, here.image + i, here.lines, between + i * floatsOfImage(),
                           static_cast<std::ptrdiff_t>(parts_.mostLines) * lineOfBlock(), between + floatsBetween());
        }
        const std::ptrdiff_t written = static_cast<std::ptrdiff_t>(here.image) * out.image;
        const bool isWhole = parts_.ofImage == 1;
        // The driver's tiles count from the image's first line.
        driver_.run({.input = between - static_cast<std::ptrdiff_t>(here.lines.from) * lineOfBlock(),
                     .packed = buffers.packedWeights + weights_.second,
                     .bias = bias,
                     .addend = chain().second.residual ? buffers.residual + written : nullptr,
                     .output = buffers.result + written,
                     .images = static_cast<int>(here.images),
                     .inImage = static_cast<std::ptrdiff_t>(floatsOfImage()),
                     .outImage = out.image,
                     .firstTile = isWhole ? 0 : here.lines.from * driver_.tilesOfLine(),
                     .endTile = isWhole ? driver_.tiles() : here.lines.to * driver_.tilesOfLine(),
                     .firstGroup = 0,
                     .endGroup = driver_.groups().size(),
                     .activation = chain().second.activation,
                     .isNonTemporal = isNonTemporal,
                     .fetched = part + 1 < some.to
                                    ? inputOf(buffers.input, parts_.part(part + 1, second().batch, second().height))
                                    : MemoryParts{}});
      }
    });
  }

 private:
  const Shape& second() const { return chain().second.shape; }
  /// Parts that follow each other are one task: each fetches what the next one reads.
  std::size_t tasks() const {
    const auto workers = static_cast<std::size_t>(chain().second.maxWorkers);
    return workers == 1 ? 1 : std::min(parts_.count(second().batch), 4 * workers);
  }
  /// What a part reads, but for lines that the part before it has read.
  MemoryParts inputOf(const float* input, const ImagePart& part) const {
    const Shape& s = chain().first.shape;
    const BlockSteps in = blockSteps(chain().first.inputLayout, s.inChannels, s.height, s.width);
    const auto line = [&](std::size_t result) {
      const int behind =
          static_cast<int>(result) * s.strideHeight - s.padHeight + (s.kernelHeight - 1) * s.dilationHeight;
      return std::clamp(behind, 0, s.height);
    };
    const int first = part.lines.from == 0 ? 0 : line(part.lines.from - 1) + 1;
    const int end = std::min(s.height, line(part.lines.to - 1) + 1);
    const std::ptrdiff_t pixels = std::ptrdiff_t{std::max(0, end - first)} * s.width;
    const float* const from =
        input + static_cast<std::ptrdiff_t>(part.image) * in.image + std::ptrdiff_t{first} * s.width * in.pixel;
    if (in.pixel != blockLength) return {from, 1, pixels * in.pixel, 0};
    return {from, s.inBlocks(), pixels * blockLength, in.block};
  }
  std::ptrdiff_t lineOfBlock() const { return std::ptrdiff_t{second().width} * blockLength; }
  /// Of an image's part.
  std::size_t floatsOfImage() const {
    return static_cast<std::size_t>(second().inBlocks()) * parts_.mostLines * static_cast<std::size_t>(lineOfBlock());
  }
  std::size_t floatsBetween() const { return parts_.images * floatsOfImage(); }
  std::size_t floatsOfWorker() const { return floatsBetween() + lines_->floatsOfCopy(); }

  std::unique_ptr<LinesPlan> lines_;
  ChainParts parts_;
  DirectDriver driver_;
  ChainWeights weights_;
  bool isNonTemporal_;
};

}  // namespace

bool servesDepthwiseProduct(const Chain& chain) {
  const Description& second = chain.second;
  return !second.isBfloat16 && servesDepthwise(chain.first) && !cutsBlock(chain.first) && second.shape.isProduct() &&
         second.shape.groups == 1 && hasWholeBlocks(second.outputLayout, second.shape.outChannels);
}

std::unique_ptr<ChainPlan> makeDepthwiseProduct(const Chain& chain, const KernelSet& kernels) {
  const ChainParts parts(chain.first);
  return std::make_unique<DepthwiseProduct>(chain, kernels, makeDepthwiseLines(chain.first, kernels), parts,
                                            DirectDriver(productShape(chain, parts), kernels));
}

}  // namespace tacc::conv
