#include "compute/conv/shape.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <utility>

#include "compute/conv/activation.hpp"
#include "core/error.hpp"

namespace tacc::conv {
namespace {

/// The product of positive numbers, or 0 when one is not positive or the bytes do not fit into ptrdiff_t.
std::size_t floatsOf(std::initializer_list<std::int64_t> sizes) {
  std::size_t product = 1;
  constexpr std::size_t limit = static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max()) / sizeof(float);
  for (const std::int64_t size : sizes) {
    if (size <= 0 || static_cast<std::size_t>(size) > limit / product) return 0;
    product *= static_cast<std::size_t>(size);
  }
  return product;
}

void requirePositive(std::initializer_list<std::pair<const char*, int>> sizes) {
  for (const auto& [name, value] : sizes) {
    if (value <= 0) fail(taccInvalidArgument, "{} is {}; it has to be 1 or more", name, value);
  }
}

int outputSize(const char* what, int size, int pad, int dilation, int kernel, int stride) {
  const std::int64_t reach = std::int64_t{dilation} * (kernel - 1) + 1;
  const std::int64_t padded = std::int64_t{size} + 2 * std::int64_t{pad};
  if (reach > padded) {
    fail(taccInvalidArgument, "the kernel reaches over {} of the {}, which is only {} with its padding", reach, what,
         padded);
  }
  const std::int64_t result = (padded - reach) / stride + 1;
  if (result > std::numeric_limits<int>::max()) fail(taccInvalidArgument, "the output's {} is too large", what);
  return static_cast<int>(result);
}

Shape shapeOf(const taccConvDesc_t& d) {
  requirePositive({{"batch", d.batch},
                   {"inChannels", d.inChannels},
                   {"height", d.height},
                   {"width", d.width},
                   {"outChannels", d.outChannels},
                   {"kernelHeight", d.kernelHeight},
                   {"kernelWidth", d.kernelWidth},
                   {"strideHeight", d.strideHeight},
                   {"strideWidth", d.strideWidth},
                   {"dilationHeight", d.dilationHeight},
                   {"dilationWidth", d.dilationWidth},
                   {"groups", d.groups},
                   {"maxWorkers", d.maxWorkers}});
  for (const auto& [name, value] : {std::pair("padHeight", d.padHeight), std::pair("padWidth", d.padWidth)}) {
    if (value < 0) fail(taccInvalidArgument, "{} is {}; it has to be 0 or more", name, value);
  }
  if (d.inChannels % d.groups != 0 || d.outChannels % d.groups != 0) {
    fail(taccInvalidArgument, "{} groups do not divide {} input and {} output channels", d.groups, d.inChannels,
         d.outChannels);
  }
  Shape shape{d.batch,
              d.inChannels,
              d.height,
              d.width,
              d.outChannels,
              d.kernelHeight,
              d.kernelWidth,
              d.strideHeight,
              d.strideWidth,
              d.padHeight,
              d.padWidth,
              d.dilationHeight,
              d.dilationWidth,
              d.groups,
              0,
              0};
  shape.outHeight = outputSize("height", d.height, d.padHeight, d.dilationHeight, d.kernelHeight, d.strideHeight);
  shape.outWidth = outputSize("width", d.width, d.padWidth, d.dilationWidth, d.kernelWidth, d.strideWidth);
  if (tensorFloats(taccLayoutNchw16c, d.batch, d.inChannels, d.height, d.width) == 0 ||
      tensorFloats(taccLayoutNchw16c, d.batch, d.outChannels, shape.outHeight, shape.outWidth) == 0 ||
      weightFloats(taccWeightsBlocked, d.outChannels, d.inChannels, d.kernelHeight, d.kernelWidth, d.groups) == 0) {
    fail(taccInvalidArgument, "the tensors of {} are larger than the address space", shape.text());
  }
  return shape;
}

/// A description of this header's or an older one's size, with the defaults of what the older one does not have. Throws
/// when it is of another size.
taccConvDesc_t withAllMembers(const taccConvDesc_t& given) {
  // Older headers end where a member begins. Before this one, what is `reserved` now was padding.
  constexpr std::size_t older[] = {offsetof(taccConvDesc_t, activation), offsetof(taccConvDesc_t, roundWeights)};
  static_assert(sizeof(taccConvDesc_t) == offsetof(taccConvDesc_t, reservedLast) + sizeof(int),
                "padding at the end would be the next member's, and older programs leave it to chance");
  if (given.size != sizeof(taccConvDesc_t) && std::ranges::find(older, given.size) == std::end(older)) {
    fail(taccInvalidArgument, "the description's size is {} and not {}; start from TACC_CONV_INITIALIZER", given.size,
         sizeof(taccConvDesc_t));
  }
  taccConvDesc_t all = TACC_CONV_INITIALIZER;
  std::memcpy(&all, &given, given.size);
  return all;
}

}  // namespace

double Shape::operations() const {
  return 2.0 * batch * outChannels * inPerGroup() * kernelHeight * kernelWidth * outHeight * outWidth;
}

std::string Shape::text() const {
  std::string text =
      fmt::format("{}x{}x{}x{} -> {}, {}x{}", batch, inChannels, height, width, outChannels, kernelHeight, kernelWidth);
  if (strideHeight != 1 || strideWidth != 1) text += fmt::format(", stride {}x{}", strideHeight, strideWidth);
  if (padHeight != 0 || padWidth != 0) text += fmt::format(", pad {}x{}", padHeight, padWidth);
  if (dilationHeight != 1 || dilationWidth != 1) text += fmt::format(", dilation {}x{}", dilationHeight, dilationWidth);
  if (groups != 1) text += fmt::format(", {} groups", groups);
  return text;
}

bool isValid(taccLayout_t layout) { return layout >= taccLayoutNchw16c && layout <= taccLayoutNhwc; }
bool isValid(taccWeightLayout_t layout) { return layout == taccWeightsKcrs || layout == taccWeightsBlocked; }

std::size_t tensorFloats(taccLayout_t layout, int batch, int channels, int height, int width) {
  if (!isValid(layout)) return 0;
  const std::int64_t stored = layout == taccLayoutNchw16c && channels > 0
                                  ? (std::int64_t{channels} + blockLength - 1) / blockLength * blockLength
                                  : channels;
  return floatsOf({batch, stored, height, width});
}

std::size_t weightFloats(taccWeightLayout_t layout, int outChannels, int inChannels, int kernelHeight, int kernelWidth,
                         int groups) {
  if (!isValid(layout) || groups <= 0 || outChannels <= 0 || outChannels % groups != 0 || inChannels % groups != 0)
    return 0;
  const std::int64_t outs = outChannels / groups;
  if (layout == taccWeightsBlocked && groups > 1 && groups == inChannels && groups == outChannels) {
    return floatsOf({(std::int64_t{groups} + blockLength - 1) / blockLength, blockLength, kernelHeight, kernelWidth});
  }
  const std::int64_t stored =
      layout == taccWeightsBlocked ? (outs + blockLength - 1) / blockLength * blockLength : outs;
  return floatsOf({groups, stored, inChannels / groups, kernelHeight, kernelWidth});
}

Description understand(const taccConvDesc_t& given) {
  const taccConvDesc_t d = withAllMembers(given);
  if (d.pass != taccConvForward && d.pass != taccConvBackwardData && d.pass != taccConvBackwardWeights) {
    fail(taccInvalidArgument, "pass {} is none of taccConvForward, taccConvBackwardData, taccConvBackwardWeights",
         static_cast<int>(d.pass));
  }
  if (!isValid(d.inputLayout)) fail(taccInvalidArgument, "input layout {} is unknown", static_cast<int>(d.inputLayout));
  if (!isValid(d.outputLayout)) {
    fail(taccInvalidArgument, "output layout {} is unknown", static_cast<int>(d.outputLayout));
  }
  if (!isValid(d.weightLayout)) {
    fail(taccInvalidArgument, "weight layout {} is unknown", static_cast<int>(d.weightLayout));
  }
  if (d.activationType != taccFloat32 && d.activationType != taccBfloat16) {
    fail(taccInvalidArgument, "activationType {} is neither taccFloat32 nor taccBfloat16",
         static_cast<int>(d.activationType));
  }
  if (d.roundWeights != 0 && d.activationType != taccBfloat16) {
    fail(taccInvalidArgument, "roundWeights belongs to activations of taccBfloat16");
  }
  const taccActivation_t activation = activationOf(d);
  if (d.pass != taccConvForward && (d.bias != 0 || d.residual != 0 || activation != taccActivationNone)) {
    fail(taccInvalidArgument, "bias, residual, relu and activation belong to the forward pass only");
  }
  if (d.pass == taccConvForward && d.accumulate != 0) {
    fail(taccInvalidArgument, "accumulate belongs to the backward passes; forward, let residual be the output");
  }
  if (d.pass == taccConvBackwardWeights && d.winograd != 0) {
    fail(taccInvalidArgument, "winograd belongs to the forward and the backward data pass");
  }
  Description result{};
  result.pass = d.pass;
  result.shape = shapeOf(d);
  result.inputLayout = d.inputLayout;
  result.outputLayout = d.outputLayout;
  result.weightLayout = d.weightLayout;
  result.bias = d.bias != 0;
  result.residual = d.residual != 0;
  result.activation = activation;
  result.accumulate = d.accumulate != 0;
  result.winograd = d.winograd != 0;
  result.maxWorkers = d.maxWorkers;
  result.isBfloat16 = d.activationType == taccBfloat16;
  result.roundsWeights = d.roundWeights != 0;
  if (d.algorithm != nullptr) result.algorithm = d.algorithm;
  return result;
}

}  // namespace tacc::conv
