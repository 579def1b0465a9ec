#include "compute/gemm/gemm.hpp"

#include <algorithm>
#include <cmath>

#include "compute/conv/amx/bf16x3_jobs.hpp"
#include "compute/conv/cost.hpp"
#include "compute/conv/shape.hpp"
#include "compute/conv/task_partition.hpp"
#include "compute/gemm/gemm_prices.hpp"
#include "compute/gemm/packed_columns.hpp"
#include "core/error.hpp"

namespace tacc::gemm {
namespace {

using conv::blockLength;

/// Values of a row that are multiplied before the next chunk of B is fetched.
constexpr int depthAtOnce = 256;

taccActivation_t activationOf(const Description& d) { return d.relu ? taccActivationRelu : taccActivationNone; }

constexpr std::size_t roundedFloats(std::size_t floats) { return (floats + 15) / 16 * 16; }

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

std::ptrdiff_t leading(const char* name, std::ptrdiff_t given, int least) {
  if (given == 0) return least;
  if (given < least) fail(taccInvalidArgument, "{} is {} and a row has {} numbers", name, given, least);
  return given;
}

/// The distance from one matrix of `rows` rows to the next.
std::ptrdiff_t distance(const char* name, std::ptrdiff_t given, std::ptrdiff_t rows, std::ptrdiff_t leading,
                        int batch) {
  constexpr std::ptrdiff_t limit = std::ptrdiff_t{1} << 60;
  const bool isHuge = leading > limit / rows;
  const std::ptrdiff_t least = isHuge ? limit : rows * leading;
  const std::ptrdiff_t result = given == 0 ? least : given;
  if (result < least) fail(taccInvalidArgument, "{} is {} and a matrix takes {} numbers", name, given, least);
  if (isHuge || result > limit / batch) {
    fail(taccInvalidArgument, "{} matrices of {} rows are larger than the address space", batch, rows);
  }
  return result;
}

}  // namespace

Description understand(const taccGemmDesc_t& d) {
  if (d.size != sizeof(taccGemmDesc_t)) {
    fail(taccInvalidArgument, "the description's size is {} and not {}; start from TACC_GEMM_INITIALIZER", d.size,
         sizeof(taccGemmDesc_t));
  }
  for (const auto& [name, value] :
       {std::pair("m", d.m), {"n", d.n}, {"k", d.k}, {"maxWorkers", d.maxWorkers}, {"batch", d.batch}}) {
    if (value <= 0) fail(taccInvalidArgument, "{} is {}; it has to be 1 or more", name, value);
  }
  Description result{d.m,
                     d.n,
                     d.k,
                     leading("lda", d.lda, d.transposeA != 0 ? d.m : d.k),
                     leading("ldb", d.ldb, d.transposeB != 0 ? d.k : d.n),
                     leading("ldc", d.ldc, d.n),
                     d.transposeA != 0,
                     d.transposeB != 0,
                     d.bias != 0,
                     d.accumulate != 0,
                     d.relu != 0,
                     d.maxWorkers,
                     d.batch,
                     0,
                     0,
                     0};
  constexpr std::ptrdiff_t limit = std::ptrdiff_t{1} << 40;
  if (result.lda > limit || result.ldb > limit || result.ldc > limit) {
    fail(taccInvalidArgument, "a distance between rows is larger than {} numbers", limit);
  }
  result.strideA = distance("strideA", d.strideA, result.transposeA ? d.k : d.m, result.lda, d.batch);
  result.strideB = distance("strideB", d.strideB, result.transposeB ? d.n : d.k, result.ldb, d.batch);
  result.strideC = distance("strideC", d.strideC, d.m, result.ldc, d.batch);
  return result;
}

GemmPlan::GemmPlan(const Description& description, const conv::KernelSet& kernels)
    : description_(description), rows_(description, kernels), layers_(layers::kernelTable(kernels.vectors)) {
  const int whole = description.n / blockLength * blockLength;
  if (whole > 0 && kernels.split != nullptr) {
    split_.emplace(description, whole, *kernels.split, layers_);
    // At the clock that AMX's tiles leave.
    constexpr double ofClock = conv::plainProductsInCycle / 32;
    const conv::DirectDriver tiles(shapeOf(description, rows_.tileStride(), 0, whole), kernels);
    const double plain = std::min(tileCycles(description, whole, tiles), Panels(description, 0, kernels).cycles());
    if (split_->cycles() < plain * ofClock) {
      kernel_ = "amx 32x2";
      packedFloats_ = split_->packedFloats();
    } else {
      split_.reset();
    }
  }
  const int first = split_ ? whole : 0;
  if (first < description.n) chooseKernels(first, kernels);
  cutRows();
}

void GemmPlan::chooseKernels(int first, const conv::KernelSet& kernels) {
  const Description& d = description_;
  const int whole = d.n / blockLength * blockLength;
  const auto set = [&](const char* kernel) {
    if (kernel_.empty()) kernel_ = std::string(kernels.vectors) + " " + kernel;
  };
  const auto addPart = [&](std::size_t floats) {
    const std::size_t begin = packedFloats_;
    packedFloats_ += floats;
    return begin;
  };
  const auto addTiles = [&](conv::DirectDriver driver) {
    set(driver.tileName().c_str());
    const std::size_t packed = addPart(driver.packedFloats());
    columns_ = std::make_unique<Columns>(Columns{first, std::move(driver), packed, {}});
    columns_->groups = groupsOf(d, first, columns_->driver);
  };
  conv::DirectDriver all(shapeOf(d, rows_.tileStride(), first, d.n), kernels);
  const bool areFew = d.n - first <= mostFewColumns && rows_.copyCycles() > 0;
  double least = tileCycles(d, d.n - first, all) + (areFew ? rows_.copyCycles() : 0);
  enum class Choice { tiles, panels, fewColumns } choice = Choice::tiles;
  Panels allPanels(d, first, kernels);
  const double ofPanels = allPanels.cycles() + (areFew ? rows_.copyCycles() : 0);
  if (ofPanels < least) {
    choice = Choice::panels;
    least = ofPanels;
  }
  const int firstFew = areFew ? first : whole;
  std::optional<conv::DirectDriver> before;
  if (first < firstFew) before.emplace(shapeOf(d, rows_.tileStride(), first, firstFew), kernels);
  std::optional<FewColumns> few;
  if (firstFew < d.n) {
    few.emplace(d, firstFew, kernels);
    const double ofFew = few->cycles() + (before ? tileCycles(d, firstFew - first, *before) : 0);
    if (ofFew < least) {
      choice = Choice::fewColumns;
      least = ofFew;
    }
  }
  plainCycles_ = least;
  if (choice == Choice::tiles) return addTiles(std::move(all));
  if (choice == Choice::panels) {
    set("panels");
    packedPanels_ = addPart(allPanels.packedFloats());
    panels_.emplace(std::move(allPanels));
    return;
  }
  if (before) addTiles(std::move(*before));
  set("few columns");
  packedFew_ = addPart(few->packedFloats());
  few_.emplace(*few);
}

bool GemmPlan::copiesA() const { return columns_ || panels_ ? rows_.areCopied() : few_ && rows_.areCopiedForFew(); }

void GemmPlan::cutRows() {
  if (panels_) {
    tasks_.emplace(description_.m, panels_->count(), splitWorkers());
  } else {
    tasks_.emplace(description_.m, columns_ ? &columns_->driver : nullptr, splitWorkers());
  }
  if (!copiesA()) return;
  copiedFloats_ = tasks_->areByRows() ? static_cast<std::size_t>(splitWorkers()) * rows_.floats(tasks_->mostRows())
                                      : rows_.floats(description_.m);
}

std::size_t GemmPlan::workspaceBytes() const {
  return workspaceOfOne() * static_cast<std::size_t>(areTasks() ? description_.maxWorkers : 1);
}

std::size_t GemmPlan::workspaceOfOne() const {
  std::size_t floats =
      copiedFloats_ + (description_.bias ? roundedFloats(static_cast<std::size_t>(description_.n)) : 0);
  return floats * sizeof(float) + (split_ ? split_->workspaceBytes(splitWorkers()) : 0);
}

double GemmPlan::predictedSeconds() const {
  const double cycles = plainCycles_ + (split_ ? split_->cycles() : 0);
  return cycles * description_.batch / conv::assumedHertz;
}

void GemmPlan::pack(const float* b, float* packed) const {
  for (int i = 0; i < description_.batch; ++i) {
    packOne(b + i * description_.strideB, packed + static_cast<std::size_t>(i) * packedFloats_);
  }
}

void GemmPlan::packOne(const float* b, float* packed) const {
  if (split_) split_->pack(b, packed);
  if (panels_) panels_->pack(b, packed + packedPanels_);
  if (few_) few_->pack(b, packed + packedFew_);
  if (columns_) packColumns(description_, columns_->groups, layers_, b, packed + columns_->packed);
}

void GemmPlan::run(const taccGemmBuffers_t& buffers, const conv::TaskExecutor& executor) const {
  const auto product = [&](std::size_t index, int worker) {
    const auto i = static_cast<std::ptrdiff_t>(index);
    taccGemmBuffers_t one = buffers;
    one.a += i * description_.strideA;
    one.packedB += index * packedFloats_;
    one.c += i * description_.strideC;
    one.workspace = static_cast<std::byte*>(buffers.workspace) + static_cast<std::size_t>(worker) * workspaceOfOne();
    return one;
  };
  if (areTasks()) {
    executor.forEach(static_cast<std::size_t>(description_.batch), [&](std::size_t index, int worker) {
      runOne(product(index, worker), conv::TaskExecutor(conv::serialExecutor()));
    });
    return;
  }
  for (int i = 0; i < description_.batch; ++i) runOne(product(static_cast<std::size_t>(i), 0), executor);
}

void GemmPlan::runOne(const taccGemmBuffers_t& buffers, const conv::TaskExecutor& executor) const {
  if (!columns_ && !panels_ && !split_) return runRows(buffers, executor);
  taccGemmBuffers_t padded = buffers;
  if (description_.bias) {
    // The kernel reads whole blocks of it.
    float* const bias = static_cast<float*>(buffers.workspace) + copiedFloats_;
    const auto count = static_cast<std::size_t>(description_.n);
    std::copy_n(buffers.bias, count, bias);
    std::fill_n(bias + count, roundedFloats(count) - count, 0.0F);
    padded.bias = bias;
  }
  if (split_) {
    auto* const workspace = static_cast<std::byte*>(buffers.workspace) + workspaceOfOne();
    split_->run({buffers.a, buffers.packedB, description_.bias ? padded.bias : nullptr, buffers.c,
                 workspace - split_->workspaceBytes(splitWorkers())},
                executor);
  }
  if (columns_ || panels_ || few_) runRows(padded, executor);
}

void GemmPlan::runRows(const taccGemmBuffers_t& buffers, const conv::TaskExecutor& executor) const {
  const int m = description_.m;
  const RowTasks& tasks = *tasks_;
  const bool areOwn = tasks.areByRows();
  const std::ptrdiff_t stride = rows_.stride(copiesA());
  auto* const copies = static_cast<float*>(buffers.workspace);
  const auto forEachPart = [&](const auto& body) {
    executor.forEach(RowTasks::partsOf(m), [&](std::size_t index, int) { body(RowTasks::part(m, index)); });
  };
  const float* a = buffers.a;
  if (copiesA() && !areOwn) {
    forEachPart([&](RowRange r) { rows_.copy(buffers.a, r.from, r.to, copies + rows_.floats(r.from)); });
    a = copies;
  }
  const auto runFew = [&](const float* rows, RowRange r) {
    few_->run(rows, stride, buffers.packedB + packedFew_, buffers.bias, buffers.c, r.from, r.to);
  };
  executor.forEach(tasks.count(), [&](std::size_t index, int worker) {
    const float* rows = a;
    if (areOwn && copiesA()) {
      const RowRange mine = tasks.range(index);
      float* const copy = copies + static_cast<std::size_t>(worker) * rows_.floats(tasks.mostRows());
      rows_.copy(buffers.a, mine.from, mine.to, copy);
      rows = copy - mine.from * stride;
    }
    if (few_ && areOwn) runFew(rows, tasks.range(index));
    if (columns_) runTiles(tasks.task(index), rows, buffers);
    if (panels_) {
      const auto [from, to] = tasks.panels(index);
      panels_->run(rows, stride, buffers.packedB + packedPanels_, buffers.bias, buffers.c, tasks.range(index), from,
                   to);
    }
  });
  if (few_ && !areOwn) forEachPart([&](RowRange r) { runFew(a, r); });
}

void GemmPlan::runTiles(const conv::TaskPartition::Task& task, const float* rows,
                        const taccGemmBuffers_t& buffers) const {
  float* const c = buffers.c + columns_->first;
  columns_->driver.run({rows, buffers.packedB + columns_->packed,
                        description_.bias ? buffers.bias + columns_->first : nullptr,
                        description_.accumulate ? c : nullptr, c, 1, 0, 0, task.tiles.from, task.tiles.to,
                        task.outputs.from, task.outputs.to, activationOf(description_)});
}

}  // namespace tacc::gemm
