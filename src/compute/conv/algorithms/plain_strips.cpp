#include "compute/conv/algorithms/plain_strips.hpp"

#include <algorithm>
#include <cstring>

#include "compute/conv/cost.hpp"
#include "compute/conv/shape.hpp"

namespace tacc::conv {
namespace {

/// `count` pixels of some lines.
void copyLines(const float* from, std::ptrdiff_t fromLine, float* to, std::ptrdiff_t toLine, std::size_t lines,
               std::ptrdiff_t count) {
  for (std::size_t line = 0; line < lines; ++line, from += fromLine, to += toLine) {
    std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(float));
  }
}

}  // namespace

PlainStrips::PlainStrips(const KernelSet& kernels, int values, int rows, std::ptrdiff_t pixels)
    : kernels_(plainKernels(kernels)), values_(values), rows_(rows), pixels_(pixels) {
  const std::ptrdiff_t wholeBlocks = (pixels_ + plainBlock - 1) / plainBlock;
  for (int blocks = 1; blocks <= mostPlainBlocks; ++blocks) {
    if (kernels_.rows[blocks] == 0) continue;
    const double cycles = stripCycles(kernels, blocks) * static_cast<double>(wholeBlocks) / blocks;
    if (blocks_ != 0 && cycles >= cycles_) continue;
    blocks_ = blocks;
    cycles_ = cycles;
  }
  const auto count = static_cast<std::size_t>(ceilDivide(rows_, kernels_.rows[blocks_]));
  for (std::size_t t = 0; t < count; ++t) tiles_.push_back(partOf(static_cast<std::size_t>(rows_), count, t));
}

double PlainStrips::stripCycles(const KernelSet& kernels, int blocks) const {
  // Of a line of the cache that comes from another page or goes there, and of a tile's sums that begin and end.
  constexpr double ofLine = 1.5, ofSum = 1.5;
  const int count = ceilDivide(rows_, kernels_.rows[blocks]);
  double cycles = ofLine * blocks * (values_ + rows_);
  for (int t = 0; t < count; ++t) {
    const int rows = partSize(rows_, count, t);
    const double vectors = double(blocks) * blockLength / kernels.fmaLanes;
    const double step = std::max({productCycles(kernels, blocks, rows), latencyCycles, (vectors + rows + blocks) / 2});
    cycles += values_ * (step + 0.3) + ofSum * vectors * rows + callCycles / 2;
  }
  return cycles;
}

void PlainStrips::runTiles(const Matrices& m, TaskPart tiles, int blocks) const {
  PlainProductCall call{};
  call.input = m.read;
  call.inputLine = m.readLine;
  call.values = values_;
  call.outputLine = m.resultLine;
  call.activation = m.activation;
  call.isNonTemporal = m.isNonTemporal;
  call.ahead = stripPixels();
  for (std::size_t t = tiles.from; t < tiles.to; ++t) {
    const auto row = static_cast<std::ptrdiff_t>(tiles_[t].from);
    call.weights = m.packed + row * values_;
    call.bias = m.bias == nullptr ? nullptr : m.bias + row;
    call.addend = m.addend == nullptr ? nullptr : m.addend + row * m.resultLine;
    call.output = m.result + row * m.resultLine;
    kernels_.product[blocks][tiles_[t].to - tiles_[t].from](call);
    call.ahead = 0;
  }
}

void PlainStrips::run(const Matrices& m, TaskPart strips, TaskPart tiles, float* scratch) const {
  const auto end = std::min(pixels_, static_cast<std::ptrdiff_t>(strips.to) * stripPixels());
  auto pixel = static_cast<std::ptrdiff_t>(strips.from) * stripPixels();
  const auto from = [&](std::ptrdiff_t first) {
    Matrices some = m;
    some.read += first;
    some.result += first;
    if (some.addend != nullptr) some.addend += first;
    return some;
  };
  while (end - pixel >= plainBlock) {
    const int blocks = end - pixel >= stripPixels() ? blocks_ : 1;
    runTiles(from(pixel), tiles, blocks);
    pixel += std::ptrdiff_t{blocks} * plainBlock;
  }
  if (pixel == end) return;
  const std::ptrdiff_t left = end - pixel;
  const Matrices last = from(pixel);
  float* const results = scratch + values_ * std::ptrdiff_t{plainBlock};
  std::fill_n(scratch, values_ * std::ptrdiff_t{plainBlock}, 0.0F);
  copyLines(last.read, m.readLine, scratch, plainBlock, static_cast<std::size_t>(values_), left);
  const auto firstRow = static_cast<std::ptrdiff_t>(tiles_[tiles.from].from);
  const std::size_t rows = tiles_[tiles.to - 1].to - tiles_[tiles.from].from;
  float* const firstResult = results + firstRow * plainBlock;
  if (m.addend != nullptr) {
    std::fill_n(firstResult, static_cast<std::ptrdiff_t>(rows) * plainBlock, 0.0F);
    copyLines(last.addend + firstRow * m.resultLine, m.resultLine, firstResult, plainBlock, rows, left);
  }
  Matrices copied = m;
  copied.read = scratch;
  copied.readLine = copied.resultLine = plainBlock;
  copied.result = results;
  if (m.addend != nullptr) copied.addend = results;
  copied.isNonTemporal = false;
  runTiles(copied, tiles, 1);
  copyLines(firstResult, plainBlock, last.result + firstRow * m.resultLine, m.resultLine, rows, left);
}

}  // namespace tacc::conv
