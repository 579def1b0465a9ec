#include <algorithm>

#include "compute/conv/shape.hpp"
#include "compute/layers/layers.hpp"
#include "compute/layers/pixel_sums.hpp"
#include "core/error.hpp"

namespace tacc::layers {
namespace {

using conv::blockLength;

/// The lines of the image that a line of outputs sees.
struct Window {
  int from, to;
  int size() const { return to - from; }
};

Window windowOf(int out, int stride, int pad, int kernel, int size) {
  const int from = out * stride - pad;
  return {std::max(0, from), std::min(size, from + kernel)};
}

/// Every pixel is in one window.
bool isTiling(const Pooling& p) {
  const taccPoolDesc_t& d = p.desc;
  return d.padHeight == 0 && d.padWidth == 0 && d.kernelHeight == d.strideHeight && d.kernelWidth == d.strideWidth &&
         p.outHeight * d.strideHeight == d.height && p.outWidth * d.strideWidth == d.width;
}

/// One window, which is the image.
bool isGlobal(const Pooling& p) { return isTiling(p) && p.outHeight == 1 && p.outWidth == 1; }

/// Whether planes of this size are read from memory, so that it pays to fetch the next line of windows.
bool comesFromMemory(const Pooling& p, std::ptrdiff_t plane) {
  return isTooLargeForCaches(static_cast<std::size_t>(p.blocks * plane) * sizeof(float));
}

/// Calls visit(line, first float of the first line of input, first float of the line of output) for every line of
/// outputs of a block.
template <class Visit>
void forEachLine(const Pooling& p, bool isNonTemporal, int planes, const Visit& visit) {
  const taccPoolDesc_t& d = p.desc;
  PoolLine line{};
  line.inputLine = std::ptrdiff_t{d.width} * blockLength;
  line.width = d.width;
  line.kernel = d.kernelWidth;
  line.stride = d.strideWidth;
  line.pad = d.padWidth;
  line.outputs = p.outWidth;
  line.planes = planes;
  line.inputPlane = d.height * line.inputLine;
  line.outputPlane = std::ptrdiff_t{p.outHeight} * p.outWidth * blockLength;
  line.isTiling = isTiling(p);
  line.isNonTemporal = isNonTemporal;
  const bool isFar = comesFromMemory(p, line.inputPlane);
  for (int y = 0; y < p.outHeight; ++y) {
    const Window lines = windowOf(y, d.strideHeight, d.padHeight, d.kernelHeight, d.height);
    line.lines = lines.size();
    // The next line of windows ends this number of lines of the image later.
    line.linesAhead = isFar ? std::min(d.height - lines.to, d.strideHeight) : 0;
    line.isLast = y == p.outHeight - 1;
    line.ahead = lines.size() * line.inputLine;
    line.finished = line.isLast
                        ? lines.size()
                        : windowOf(y + 1, d.strideHeight, d.padHeight, d.kernelHeight, d.height).from - lines.from;
    visit(line, lines.from * line.inputLine, std::ptrdiff_t{y} * p.outWidth * blockLength);
  }
}

/// Gradients for which there are kernels of windows of three columns.
bool isAverageOfThree(const Pooling& p) {
  const taccPoolDesc_t& d = p.desc;
  return d.kind == taccPoolAverage && d.kernelHeight == 3 && d.kernelWidth == 3 && d.strideHeight == 1 &&
         d.strideWidth == 1;
}
bool areLargestOfThree(const Pooling& p) {
  return p.desc.kind == taccPoolMax && p.desc.kernelWidth == 3 && p.desc.strideWidth == 2 && p.desc.kernelHeight <= 3;
}

/// The gradient of averages of 3x3 pixels, one apart, of a block: every line of the image is written once.
void spreadAverages(const Pooling& p, bool isNonTemporal, const float* outputGradient, float* inputGradient,
                    const LayerKernels& kernels) {
  const taccPoolDesc_t& d = p.desc;
  PoolLine line{};
  line.inputLine = std::ptrdiff_t{p.outWidth} * blockLength;
  line.width = p.outWidth;
  line.kernel = 3;
  line.stride = 1;
  line.pad = 2 - d.padWidth;
  line.outputs = d.width;
  line.isNonTemporal = isNonTemporal;
  const bool isFar = comesFromMemory(p, p.outHeight * line.inputLine);
  for (int y = 0; y < d.height; ++y) {
    const Window lines = windowOf(y, 1, 2 - d.padHeight, 3, p.outHeight);
    float shares[3] = {};
    for (int i = 0; i < lines.size(); ++i) {
      shares[i] = 1.0F / static_cast<float>(windowOf(lines.from + i, 1, d.padHeight, 3, d.height).size());
    }
    line.lines = lines.size();
    line.linesAhead = isFar ? std::min(p.outHeight - lines.to, 1) : 0;
    line.ahead = lines.size() * line.inputLine;
    line.isLast = y == d.height - 1;
    kernels.poolAverageGradientThree(line, shares, outputGradient + lines.from * line.inputLine,
                                     inputGradient + std::ptrdiff_t{y} * d.width * blockLength);
  }
}

void averagePlane(const float* from, std::ptrdiff_t pixels, float* to, const LayerKernels& kernels) {
  alignas(64) float sum[blockLength] = {};
  addAllPixels(from, pixels, sum, kernels);
  const float share = 1.0F / static_cast<float>(pixels);
  for (int c = 0; c < blockLength; ++c) to[c] = sum[c] * share;
}

int outputSize(const char* what, int size, int pad, int kernel, int stride) {
  if (kernel > size + 2 * std::int64_t{pad}) {
    fail(taccInvalidArgument, "the window of {} is larger than the {} of {} with its padding", kernel, what, size);
  }
  return static_cast<int>((size + 2 * std::int64_t{pad} - kernel) / stride) + 1;
}

/// Where next to nothing is read: so it is on AMD's CPUs (41 GB/s for 28 of Zen 4), and not on Intel's (11 for 24).
bool writesFasterThroughCaches() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  return __builtin_cpu_is("amd") != 0;
#else
  return true;
#endif
}

}  // namespace

Pooling understand(const taccPoolDesc_t& d) {
  if (d.size != sizeof(taccPoolDesc_t)) {
    fail(taccInvalidArgument, "the description's size is {} and not {}; start from TACC_POOL_INITIALIZER", d.size,
         sizeof(taccPoolDesc_t));
  }
  if (d.kind != taccPoolMax && d.kind != taccPoolAverage) {
    fail(taccInvalidArgument, "kind {} is neither taccPoolMax nor taccPoolAverage", static_cast<int>(d.kind));
  }
  for (const auto& [name, value] : {std::pair("batch", d.batch),
                                    {"channels", d.channels},
                                    {"height", d.height},
                                    {"width", d.width},
                                    {"kernelHeight", d.kernelHeight},
                                    {"kernelWidth", d.kernelWidth},
                                    {"strideHeight", d.strideHeight},
                                    {"strideWidth", d.strideWidth}}) {
    if (value <= 0) fail(taccInvalidArgument, "{} is {}; it has to be 1 or more", name, value);
  }
  for (const auto& [name, pad, kernel] :
       {std::tuple("padHeight", d.padHeight, d.kernelHeight), {"padWidth", d.padWidth, d.kernelWidth}}) {
    if (pad < 0 || pad >= kernel) {
      fail(taccInvalidArgument, "{} is {}; it has to be 0 or more, and less than the window's {}", name, pad, kernel);
    }
  }
  if (conv::tensorFloats(taccLayoutNchw16c, d.batch, d.channels, d.height, d.width) == 0) {
    fail(taccInvalidArgument, "the input is larger than the address space");
  }
  return {d, d.batch * conv::ceilDivide(d.channels, blockLength),
          outputSize("height", d.height, d.padHeight, d.kernelHeight, d.strideHeight),
          outputSize("width", d.width, d.padWidth, d.kernelWidth, d.strideWidth)};
}

void poolForward(const Pooling& p, const float* input, float* output, const LayerKernels& kernels,
                 const conv::TaskExecutor& executor) {
  const std::ptrdiff_t inPlane = std::ptrdiff_t{p.desc.height} * p.desc.width * blockLength;
  const std::ptrdiff_t outPlane = std::ptrdiff_t{p.outHeight} * p.outWidth * blockLength;
  const auto pool = p.desc.kind == taccPoolMax ? kernels.poolMax : kernels.poolAverage;
  const bool isNonTemporal = isTooLargeForCaches(static_cast<std::size_t>(p.blocks * outPlane) * sizeof(float));
  // Where the image comes from memory, several blocks in turn: see addAllPixels().
  if (isGlobal(p) && p.desc.kind == taccPoolAverage) {
    executor.forEach(static_cast<std::size_t>(p.blocks), [&](std::size_t block, int) {
      const auto at = static_cast<std::ptrdiff_t>(block);
      averagePlane(input + at * inPlane, inPlane / blockLength, output + at * outPlane, kernels);
    });
    return;
  }
  const auto blocks = static_cast<std::size_t>(p.blocks);
  // Windows of three one apart read a line at a time anyway.
  const bool isLines = p.desc.kernelWidth == 3 && p.desc.strideWidth == 1;
  const std::size_t planes =
      !isLines && isTooLargeForCaches(blocks * static_cast<std::size_t>(inPlane) * sizeof(float)) ? 4 : 1;
  executor.forEach((blocks + planes - 1) / planes, [&](std::size_t index, int) {
    const std::size_t block = index * planes;
    const float* const from = input + static_cast<std::ptrdiff_t>(block) * inPlane;
    float* const to = output + static_cast<std::ptrdiff_t>(block) * outPlane;
    forEachLine(p, isNonTemporal, static_cast<int>(std::min(planes, blocks - block)),
                [&](const PoolLine& line, std::ptrdiff_t in, std::ptrdiff_t out) { pool(line, from + in, to + out); });
  });
}

void poolBackward(const Pooling& p, const float* input, const float* output, const float* outputGradient,
                  float* inputGradient, const LayerKernels& kernels, const conv::TaskExecutor& executor) {
  const std::ptrdiff_t inPlane = std::ptrdiff_t{p.desc.height} * p.desc.width * blockLength;
  const std::ptrdiff_t outPlane = std::ptrdiff_t{p.outHeight} * p.outWidth * blockLength;
  const bool isReadLittle = isGlobal(p) && p.desc.kind == taccPoolAverage;
  const bool isNonTemporal = !(isReadLittle && writesFasterThroughCaches()) &&
                             isTooLargeForCaches(static_cast<std::size_t>(p.blocks * inPlane) * sizeof(float));
  executor.forEach(static_cast<std::size_t>(p.blocks), [&](std::size_t block, int) {
    const std::ptrdiff_t inAt = static_cast<std::ptrdiff_t>(block) * inPlane;
    const std::ptrdiff_t outAt = static_cast<std::ptrdiff_t>(block) * outPlane;
    float* const to = inputGradient + inAt;
    if (isAverageOfThree(p)) {
      spreadAverages(p, isNonTemporal, outputGradient + outAt, to, kernels);
      return;
    }
    const bool areThree = areLargestOfThree(p);
    std::ptrdiff_t cleared = isTiling(p) ? inPlane : 0;
    // Just before it is added to, so that it stays in the L1 cache.
    const auto clearTo = [&](std::ptrdiff_t end) {
      if (end > cleared) std::fill(to + cleared, to + end, 0.0F);
      cleared = std::max(cleared, end);
    };
    forEachLine(p, isNonTemporal, 1, [&](PoolLine line, std::ptrdiff_t in, std::ptrdiff_t out) {
      const float* const gradient = outputGradient + outAt + out;
      const std::ptrdiff_t end = in + line.lines * line.inputLine;
      if (areThree) {
        clearTo(in);
        line.added = static_cast<int>((cleared - in) / line.inputLine);
        kernels.poolMaxGradientThree(line, input + inAt + in, output + outAt + out, gradient, to + in);
        cleared = std::max(cleared, end);
        return;
      }
      clearTo(end);
      if (p.desc.kind == taccPoolMax) {
        kernels.poolMaxGradient(line, input + inAt + in, output + outAt + out, gradient, to + in);
      } else {
        kernels.poolAverageGradient(line, gradient, to + in);
      }
    });
    clearTo(inPlane);
  });
}

}  // namespace tacc::layers
