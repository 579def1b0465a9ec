#include "compute/layers/pooling.hpp"

#include <algorithm>
#include <limits>

#include "base/error.hpp"
#include "compute/conv/shape.hpp"

namespace tacc::layers {
namespace {

using conv::blockLength;

/// The part of the image that an output pixel sees, in one dimension.
struct Window {
  int from, to;
  int size() const { return to - from; }
};

Window windowOf(int out, int stride, int pad, int kernel, int size) {
  const int from = out * stride - pad;
  return {std::max(0, from), std::min(size, from + kernel)};
}

/// Calls visit(first float of the output pixel, lines, columns) for every output pixel of a block.
template <class Visit>
void forEachOutput(const Pooling& p, const Visit& visit) {
  const taccPoolDesc_t& d = p.desc;
  std::ptrdiff_t at = 0;
  for (int y = 0; y < p.outHeight; ++y) {
    const Window lines = windowOf(y, d.strideHeight, d.padHeight, d.kernelHeight, d.height);
    for (int x = 0; x < p.outWidth; ++x, at += blockLength) {
      visit(at, lines, windowOf(x, d.strideWidth, d.padWidth, d.kernelWidth, d.width));
    }
  }
}

/// Calls visit(first float of the input pixel) for the pixels of a window, line by line.
template <class Visit>
void forEachInput(const Pooling& p, Window lines, Window columns, const Visit& visit) {
  for (int y = lines.from; y < lines.to; ++y) {
    for (int x = columns.from; x < columns.to; ++x) visit((std::ptrdiff_t{y} * p.desc.width + x) * blockLength);
  }
}

int outputSize(const char* what, int size, int pad, int kernel, int stride) {
  if (kernel > size + 2 * std::int64_t{pad}) {
    fail(taccInvalidArgument, "the window of {} is larger than the {} of {} with its padding", kernel, what, size);
  }
  return static_cast<int>((size + 2 * std::int64_t{pad} - kernel) / stride) + 1;
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

void poolForward(const Pooling& p, const float* input, float* output, const conv::Executor& executor) {
  const std::ptrdiff_t inPlane = std::ptrdiff_t{p.desc.height} * p.desc.width * blockLength;
  const std::ptrdiff_t outPlane = std::ptrdiff_t{p.outHeight} * p.outWidth * blockLength;
  executor.forEach(static_cast<std::size_t>(p.blocks), [&](std::size_t block, int) {
    const float* const from = input + static_cast<std::ptrdiff_t>(block) * inPlane;
    float* const to = output + static_cast<std::ptrdiff_t>(block) * outPlane;
    forEachOutput(p, [&](std::ptrdiff_t at, Window lines, Window columns) {
      float values[blockLength];
      if (p.desc.kind == taccPoolMax) {
        std::fill_n(values, blockLength, -std::numeric_limits<float>::infinity());
        forEachInput(p, lines, columns, [&](std::ptrdiff_t pixel) {
          for (int c = 0; c < blockLength; ++c) values[c] = from[pixel + c] > values[c] ? from[pixel + c] : values[c];
        });
      } else {
        std::fill_n(values, blockLength, 0.0F);
        forEachInput(p, lines, columns, [&](std::ptrdiff_t pixel) {
          for (int c = 0; c < blockLength; ++c) values[c] += from[pixel + c];
        });
        const float share = 1.0F / static_cast<float>(lines.size() * columns.size());
        for (float& value : values) value *= share;
      }
      std::copy_n(values, blockLength, to + at);
    });
  });
}

void poolBackward(const Pooling& p, const float* input, const float* output, const float* outputGradient,
                  float* inputGradient, const conv::Executor& executor) {
  const std::ptrdiff_t inPlane = std::ptrdiff_t{p.desc.height} * p.desc.width * blockLength;
  const std::ptrdiff_t outPlane = std::ptrdiff_t{p.outHeight} * p.outWidth * blockLength;
  executor.forEach(static_cast<std::size_t>(p.blocks), [&](std::size_t block, int) {
    const std::ptrdiff_t inAt = static_cast<std::ptrdiff_t>(block) * inPlane;
    const std::ptrdiff_t outAt = static_cast<std::ptrdiff_t>(block) * outPlane;
    float* const to = inputGradient + inAt;
    std::fill_n(to, inPlane, 0.0F);
    forEachOutput(p, [&](std::ptrdiff_t at, Window lines, Window columns) {
      const float* const gradient = outputGradient + outAt + at;
      if (p.desc.kind == taccPoolAverage) {
        const float share = 1.0F / static_cast<float>(lines.size() * columns.size());
        forEachInput(p, lines, columns, [&](std::ptrdiff_t pixel) {
          for (int c = 0; c < blockLength; ++c) to[pixel + c] += gradient[c] * share;
        });
        return;
      }
      // The first pixel that has the largest value gets all of it.
      float left[blockLength];
      std::copy_n(gradient, blockLength, left);
      forEachInput(p, lines, columns, [&](std::ptrdiff_t pixel) {
        for (int c = 0; c < blockLength; ++c) {
          const bool isLargest = input[inAt + pixel + c] == output[outAt + at + c];
          to[pixel + c] += isLargest ? left[c] : 0.0F;
          left[c] = isLargest ? 0.0F : left[c];
        }
      });
    });
  });
}

}  // namespace tacc::layers
