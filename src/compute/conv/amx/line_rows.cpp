#include "compute/conv/amx/line_rows.hpp"

#include <algorithm>

#include "compute/conv/weights.hpp"

namespace tacc::conv {

std::vector<Bf16x3Run> cutAtBorders(const Shape& s, const Bf16x3Run& run) {
  const std::ptrdiff_t line = std::ptrdiff_t{s.width} * s.inChannels;
  const std::ptrdiff_t step = std::ptrdiff_t{s.strideWidth} * s.inChannels;
  const std::ptrdiff_t before = std::ptrdiff_t{s.padWidth} * s.inChannels;
  const std::ptrdiff_t numbers = std::ptrdiff_t{s.kernelWidth} * s.inChannels;
  const auto bitsBelow = [](std::ptrdiff_t lane) {
    return lane >= lanesOfRun ? ~std::uint64_t{0} : (std::uint64_t{1} << lane) - 1;
  };
  std::vector<Bf16x3Run> runs;
  for (int row = 0; row < run.rows; ++row) {
    const std::ptrdiff_t at = row * step - before;  // from the line's beginning
    const std::ptrdiff_t from = std::clamp<std::ptrdiff_t>(-at, 0, numbers);
    const std::ptrdiff_t to = std::clamp<std::ptrdiff_t>(line - at, from, numbers);
    // What is behind a row's numbers is left out anyway.
    const bool isInside = from == 0 && to == numbers;
    const std::uint64_t lanes = isInside ? ~std::uint64_t{0} : bitsBelow(to) & ~bitsBelow(from);
    if (!runs.empty() && runs.back().lanes == lanes) {
      ++runs.back().rows;
    } else {
      runs.push_back({run.row + row, run.source + at, 1, lanes});
    }
  }
  return runs;
}

void gatherLine(const Shape& s, taccWeightLayout_t layout, const float* weights, const LineBlock& block, float* rows) {
  const int first = block.inBlock * blockLength, numbers = s.kernelWidth * s.inChannels;
  for (int in = 0; in < std::min(blockLength, numbers - first); ++in) {
    const int tap = (first + in) / s.inChannels, channel = (first + in) % s.inChannels;
    const WeightBlock of = weightBlock(s, layout, 0, block.outBlock, 0, block.kernelLine, tap);
    for (int out = 0; out < of.outs; ++out) {
      rows[in * blockLength + out] = weights[of.base + channel * of.inStep + out * of.outStep];
    }
  }
}

}  // namespace tacc::conv
