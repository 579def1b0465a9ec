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

double PlainStrips::cutLineCycles() const {
  constexpr double most = 2, fewValues = 128, manyValues = 768;  // cycles of a value of a tile
  if (pixels_ % blockLength == 0) return 0;
  const double part = std::clamp((values_ - fewValues) / (manyValues - fewValues), 0.0, 1.0);
  const double strips = static_cast<double>(pixels_) / static_cast<double>(stripPixels());
  return most * part * values_ * static_cast<double>(tiles_.size()) * strips;
}

/// As many as stay in the L2 cache, beside the weights: tiles behind the first read them there. Pages of a few rows are
/// known to the core all at once, and what is read better stays in the L1 cache.
std::ptrdiff_t PlainStrips::stripsTogether() const {
  const std::size_t cacheBytes = std::min<std::size_t>(768 * 1024, l2CacheBytes() / 4 * 3);
  const auto cacheFloats = static_cast<std::ptrdiff_t>(cacheBytes / sizeof(float));
  constexpr int fewRows = 32;
  const std::ptrdiff_t most = rows_ <= fewRows ? 4 : 32;
  return std::clamp<std::ptrdiff_t>(cacheFloats / (stripPixels() * values_), 1, most);
}

/// isFirst: of a strip's tiles, which fetches what the next strip reads. That of few values fits the L1 cache beside
/// this one; of more, it would be gone there before it is read, and comes to the L2 cache.
void PlainStrips::runTile(const Matrices& m, std::size_t tile, int blocks, bool isFirst) const {
  constexpr int fewValues = 100, valuesAhead = 4;
  const bool fetchesNext = isFirst && values_ <= fewValues;
  const auto row = static_cast<std::ptrdiff_t>(tiles_[tile].from);
  PlainProductCall call{};
  call.input = m.read;
  call.inputLine = m.readLine;
  call.values = values_;
  call.weights = m.packed + row * values_;
  call.bias = m.bias == nullptr ? nullptr : m.bias + row;
  call.addend = m.addend == nullptr ? nullptr : m.addend + row * m.resultLine;
  call.output = m.result + row * m.resultLine;
  call.outputLine = m.resultLine;
  call.activation = m.activation;
  call.isNonTemporal = m.isNonTemporal;
  call.nearAhead = fetchesNext ? stripPixels() : valuesAhead * m.readLine;
  call.farAhead = isFirst && !fetchesNext ? stripPixels() : 0;
  kernels_.product[blocks][tiles_[tile].to - tiles_[tile].from](call);
}

void PlainStrips::run(const Matrices& m, TaskPart strips, TaskPart tiles, float* scratch) const {
  const auto end = std::min(pixels_, static_cast<std::ptrdiff_t>(strips.to) * stripPixels());
  const auto begin = static_cast<std::ptrdiff_t>(strips.from) * stripPixels();
  std::ptrdiff_t pixel = begin;
  const auto from = [&](std::ptrdiff_t first) {
    Matrices some = m;
    some.read += first - m.firstRead;
    some.result += first - m.firstResult;
    if (some.addend != nullptr) some.addend += first - m.firstResult;
    return some;
  };
  const auto runStrips = [&](std::ptrdiff_t count, int blocks) {
    for (std::size_t t = tiles.from; t < tiles.to; ++t) {
      for (std::ptrdiff_t i = 0; i < count; ++i) {
        runTile(from(pixel + i * blocks * plainBlock), t, blocks, t == tiles.from);
      }
    }
    pixel += count * blocks * plainBlock;
  };
  const std::ptrdiff_t together = stripsTogether();
  while (end - pixel >= stripPixels()) runStrips(std::min(together, (end - pixel) / stripPixels()), blocks_);
  while (end - pixel >= plainBlock) runStrips(1, 1);
  if (pixel == end) return;
  if (end - begin >= plainBlock && m.addend != m.result) {
    // Some pixels of the whole vector before once more, with the same results.
    pixel = end - plainBlock;
    runStrips(1, 1);
    return;
  }
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
  for (std::size_t t = tiles.from; t < tiles.to; ++t) runTile(copied, t, 1, false);
  copyLines(firstResult, plainBlock, last.result + firstRow * m.resultLine, m.resultLine, rows, left);
}

}  // namespace tacc::conv
