#include "compute/gemm/plain_columns.hpp"

#include <algorithm>
#include <cmath>

#include "compute/conv/cost.hpp"
#include "compute/conv/shape.hpp"
#include "compute/gemm/gemm_prices.hpp"

namespace tacc::gemm {
namespace {

using conv::blockLength;

/// Values of a row that are multiplied before the next chunk of B is fetched.
constexpr int depthAtOnce = 256;

taccActivation_t activationOf(const Description& d) { return d.relu ? taccActivationRelu : taccActivationNone; }

/// More columns than that are not few: the L1 cache has no room for a part of each.
constexpr int mostFewColumns = 32;

/// The columns [first, end) as output channels.
conv::DirectShape shapeOf(const Description& d, std::ptrdiff_t rowStride, int first, int end) {
  conv::DirectShape c{};
  for (int left = d.k; left > 0; left -= depthAtOnce) c.inCounts.push_back(std::min(left, depthAtOnce));
  c.inHeight = c.outHeight = 1;
  c.inWidth = c.outWidth = d.m;
  c.inPixel = rowStride;
  c.inLine = c.inPixel * d.m;
  c.inPlane = depthAtOnce;
  c.outBlocks = conv::ceilDivide(end - first, blockLength);
  c.lastOuts = end - first - (c.outBlocks - 1) * blockLength;
  c.isCut = c.lastOuts < blockLength;
  c.outPixel = d.ldc;
  c.outLine = d.ldc * d.m;
  c.outPlane = blockLength;
  c.strideHeight = c.strideWidth = 1;
  c.taps = {{0, 0}};
  return c;
}

/// Those of the tiles, of the columns from `first` on.
std::vector<ColumnGroup> groupsOf(const Description& d, int first, const conv::DirectDriver& driver) {
  std::vector<ColumnGroup> result;
  for (const conv::OutGroup& group : driver.groups()) {
    const int width = group.blocks * blockLength;
    const int column = first + group.firstBlock * blockLength;
    result.push_back({column, std::min(width, d.n - column), width, group.packed});
  }
  return result;
}

/// Of tiles of vectors, for `columns` columns.
double tileCycles(const Description& d, int columns, const conv::DirectDriver& driver) {
  const double parts = std::ceil(static_cast<double>(driver.tiles()) / static_cast<double>(driver.tilesAtOnce()));
  // Of few groups of columns, what is written follows itself.
  const double lineInL2 = driver.groups().size() <= 2 ? 5 : 8;
  constexpr double ofCall = 100;
  return ofCall + withMatrix(withResults(driver.cycles(), d, columns, {0, lineInL2, 27}), parts, driver.packedFloats());
}

}  // namespace

PlainColumns::PlainColumns(const Description& d, int first, const conv::KernelSet& kernels, int workers)
    : d_(d), first_(first), rows_(d, kernels), layers_(layers::kernelTable(kernels.vectors)) {
  chooseKernels(kernels);
  cutRows(workers);
}

void PlainColumns::chooseKernels(const conv::KernelSet& kernels) {
  const auto tilesUpTo = [&](int end) {
    return std::make_unique<conv::DirectDriver>(shapeOf(d_, rows_.tileStride(), first_, end), kernels);
  };
  const int whole = std::max(first_, d_.n / blockLength * blockLength);
  const bool areFew = d_.n - first_ <= mostFewColumns && rows_.copyCycles() > 0;
  const double copyCycles = areFew ? rows_.copyCycles() : 0;
  tiles_ = tilesUpTo(d_.n);
  kernel_ = tiles_->tileName();
  cycles_ = tileCycles(d_, d_.n - first_, *tiles_) + copyCycles;
  Panels panels(d_, first_, kernels);
  const double ofPanels = panels.cycles() + copyCycles;
  if (ofPanels < cycles_) {
    cycles_ = ofPanels;
    kernel_ = "panels";
    tiles_.reset();
    panels_.emplace(std::move(panels));
  }
  const int firstFew = areFew ? first_ : whole;
  if (firstFew < d_.n) {
    const FewColumns few(d_, firstFew, kernels);
    std::unique_ptr<conv::DirectDriver> before = first_ < firstFew ? tilesUpTo(firstFew) : nullptr;
    const double ofFew = few.cycles() + (before ? tileCycles(d_, firstFew - first_, *before) : 0);
    if (ofFew < cycles_) {
      cycles_ = ofFew;
      kernel_ = before ? before->tileName() : "few columns";
      panels_.reset();
      tiles_ = std::move(before);
      few_.emplace(few);
    }
  }
  if (panels_) packedFloats_ = panels_->packedFloats();
  if (tiles_) {
    groups_ = groupsOf(d_, first_, *tiles_);
    packedFloats_ = tiles_->packedFloats();
  }
  packedFew_ = packedFloats_;
  if (few_) packedFloats_ += few_->packedFloats();
}

void PlainColumns::cutRows(int workers) {
  if (panels_) {
    tasks_.emplace(d_.m, panels_->count(), workers);
  } else {
    tasks_.emplace(d_.m, tiles_.get(), workers);
  }
  if (!copiesA()) return;
  copiedFloats_ =
      tasks_->areByRows() ? static_cast<std::size_t>(workers) * rows_.floats(tasks_->mostRows()) : rows_.floats(d_.m);
}

void PlainColumns::pack(const float* b, float* packed) const {
  if (panels_) panels_->pack(b, packed);
  if (tiles_) packColumns(d_, groups_, layers_, b, packed);
  if (few_) few_->pack(b, packed + packedFew_);
}

void PlainColumns::run(const float* a, const float* packed, const float* bias, float* c, float* copies,
                       const conv::TaskExecutor& executor) const {
  const RowTasks& tasks = *tasks_;
  const bool areOwn = tasks.areByRows();
  const std::ptrdiff_t stride = rows_.stride(copiesA());
  const auto forEachPart = [&](const auto& body) {
    executor.forEach(RowTasks::partsOf(d_.m), [&](std::size_t index, int) { body(RowTasks::part(d_.m, index)); });
  };
  if (copiesA() && !areOwn) {
    forEachPart([&](RowRange r) { rows_.copy(a, r.from, r.to, copies + rows_.floats(r.from)); });
    a = copies;
  }
  const auto runFew = [&](const float* rows, RowRange r) {
    few_->run(rows, stride, packed + packedFew_, bias, c, r.from, r.to);
  };
  executor.forEach(tasks.count(), [&](std::size_t index, int worker) {
    const float* rows = a;
    if (areOwn && copiesA()) {
      const RowRange mine = tasks.range(index);
      float* const copy = copies + static_cast<std::size_t>(worker) * rows_.floats(tasks.mostRows());
      rows_.copy(a, mine.from, mine.to, copy);
      rows = copy - mine.from * stride;
    }
    if (few_ && areOwn) runFew(rows, tasks.range(index));
    if (tiles_) runTiles(tasks.task(index), rows, packed, bias, c);
    if (panels_) {
      const auto [from, to] = tasks.panels(index);
      panels_->run(rows, stride, packed, bias, c, tasks.range(index), from, to);
    }
  });
  if (few_ && !areOwn) forEachPart([&](RowRange r) { runFew(a, r); });
}

void PlainColumns::runTiles(const conv::TaskPartition::Task& task, const float* rows, const float* packed,
                            const float* bias, float* c) const {
  float* const results = c + first_;
  tiles_->run({rows, packed, bias != nullptr ? bias + first_ : nullptr, d_.accumulate ? results : nullptr, results, 1,
               0, 0, task.tiles.from, task.tiles.to, task.outputs.from, task.outputs.to, activationOf(d_)});
}

}  // namespace tacc::gemm
