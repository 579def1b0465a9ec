#include "compute/gemm/gemm.hpp"

#include <algorithm>
#include <cstring>

#include "compute/conv/amx/bf16x3_jobs.hpp"
#include "compute/conv/cost.hpp"
#include "compute/conv/shape.hpp"
#include "compute/conv/task_partition.hpp"
#include "core/error.hpp"

namespace tacc::gemm {
namespace {

using conv::blockLength;

/// Values of a row that are multiplied before the next chunk of B is fetched.
constexpr int depthAtOnce = 256;

taccActivation_t activationOf(const Description& d) { return d.relu ? taccActivationRelu : taccActivationNone; }

constexpr std::size_t roundedFloats(std::size_t floats) { return (floats + 15) / 16 * 16; }

/// Rows a multiple of this many bytes apart share a few places of the L1 cache, where a tile needs many rows at
/// once.
constexpr std::size_t aliasBytes = 2048;

bool alias(std::ptrdiff_t stride) { return static_cast<std::size_t>(stride) * sizeof(float) % aliasBytes == 0; }

/// Whether A has to be copied, a row after the other, before tiles of vectors multiply it.
bool isCopied(const Description& d) { return d.transposeA || (d.m > 4 && alias(d.lda)); }

/// What copying A takes that few columns would read where it is; 0 where they would not.
double copyCycles(const Description& d) {
  if (d.transposeA || !isCopied(d)) return 0;
  const double floats = double(d.m) * d.k;
  return floats * (conv::staysInL2(static_cast<std::size_t>(floats) * sizeof(float)) ? 0.2 : 0.6);
}

/// More columns than that are not few: the L1 cache has no room for a part of each.
constexpr int mostFewColumns = 32;

/// Floats from row to row of A as it is multiplied.
std::ptrdiff_t rowStride(const Description& d) {
  if (!isCopied(d)) return d.lda;
  const auto rounded = static_cast<std::ptrdiff_t>(roundedFloats(static_cast<std::size_t>(d.k)));
  return alias(rounded) ? rounded + blockLength : rounded;
}

/// The columns [first, end) as output channels.
conv::DirectShape shapeOf(const Description& d, int first, int end) {
  conv::DirectShape c{};
  for (int left = d.k; left > 0; left -= depthAtOnce) c.inCounts.push_back(std::min(left, depthAtOnce));
  c.inHeight = c.outHeight = 1;
  c.inWidth = c.outWidth = d.m;
  c.inPixel = rowStride(d);
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

GemmPlan::GemmPlan(const Description& description, const conv::KernelSet& kernels) : description_(description) {
  const int whole = description.n / blockLength * blockLength;
  if (whole > 0 && kernels.split != nullptr) {
    const std::ptrdiff_t stride = description.transposeA ? rowStride(description) : description.lda;
    split_.emplace(description, whole, stride, *kernels.split);
    // At the clock that AMX's tiles leave.
    constexpr double ofClock = conv::plainProductsInCycle / 32;
    if (split_->cycles() < conv::DirectDriver(shapeOf(description, 0, whole), kernels).cycles() * ofClock) {
      kernel_ = "amx 32x2";
      packedFloats_ = split_->packedFloats();
      if (whole < description.n) chooseKernels(whole, kernels);
      return;
    }
    split_.reset();
  }
  chooseKernels(0, kernels);
}

void GemmPlan::chooseKernels(int first, const conv::KernelSet& kernels) {
  const Description& d = description_;
  const int whole = d.n / blockLength * blockLength;
  const auto addTiles = [&](conv::DirectDriver driver) {
    if (kernel_.empty()) kernel_ = std::string(kernels.vectors) + " " + driver.tileName();
    const std::size_t floats = driver.packedFloats();
    columns_.emplace(Columns{first, std::move(driver), packedFloats_});
    packedFloats_ += floats;
  };
  conv::DirectDriver all(shapeOf(d, first, d.n), kernels);
  const bool areFew = d.n - first <= mostFewColumns && copyCycles(d) > 0;
  const int firstFew = areFew ? first : whole;
  if (firstFew == d.n) return addTiles(std::move(all));
  const FewColumns few(d, firstFew, kernels);
  std::optional<conv::DirectDriver> before;
  if (first < firstFew) before.emplace(shapeOf(d, first, firstFew), kernels);
  const double ofTiles = all.cycles() + (areFew ? copyCycles(d) : 0);
  if (few.cycles() + (before ? before->cycles() : 0) >= ofTiles) return addTiles(std::move(all));
  if (before) addTiles(std::move(*before));
  if (kernel_.empty()) kernel_ = std::string(kernels.vectors) + " few columns";
  packedFew_ = packedFloats_;
  packedFloats_ += few.packedFloats();
  few_.emplace(few);
}

bool GemmPlan::copiesA() const {
  // Few columns read rows as vectors, one behind the other, which distances do not matter to.
  return isCopied(description_) && (description_.transposeA || columns_);
}

std::size_t GemmPlan::copiedFloats() const {
  if (!copiesA()) return 0;
  return static_cast<std::size_t>(description_.m) * static_cast<std::size_t>(rowStride(description_));
}

std::size_t GemmPlan::workspaceBytes() const {
  return workspaceOfOne() * static_cast<std::size_t>(areTasks() ? description_.maxWorkers : 1);
}

std::size_t GemmPlan::workspaceOfOne() const {
  std::size_t floats =
      copiedFloats() + (description_.bias ? roundedFloats(static_cast<std::size_t>(description_.n)) : 0);
  return floats * sizeof(float) + (split_ ? split_->workspaceBytes(splitWorkers()) : 0);
}

double GemmPlan::predictedSeconds() const {
  const double cycles =
      (few_ ? few_->cycles() : 0) + (split_ ? split_->cycles() : 0) + (columns_ ? columns_->driver.cycles() : 0);
  return cycles * description_.batch / conv::assumedHertz;
}

void GemmPlan::pack(const float* b, float* packed) const {
  for (int i = 0; i < description_.batch; ++i) {
    packOne(b + i * description_.strideB, packed + static_cast<std::size_t>(i) * packedFloats_);
  }
}

void GemmPlan::packOne(const float* b, float* packed) const {
  const Description& d = description_;
  if (split_) split_->pack(b, packed);
  if (few_) few_->pack(b, packed + packedFew_);
  if (!columns_) return;
  columns_->driver.pack(packed + columns_->packed, [&](float* to, int block, int depth, int, int value) {
    const std::ptrdiff_t row = depth * std::ptrdiff_t{depthAtOnce} + value;
    const int first = columns_->first + block * blockLength;
    const int count = std::min(blockLength, d.n - first);
    for (int j = 0; j < blockLength; ++j) {
      const std::ptrdiff_t column = first + j;
      to[j] = j >= count ? 0.0F : d.transposeB ? b[column * d.ldb + row] : b[row * d.ldb + column];
    }
  });
}

const float* GemmPlan::rowsOfA(const taccGemmBuffers_t& buffers, const conv::TaskExecutor& executor) const {
  const Description& d = description_;
  if (!copiesA()) return buffers.a;
  auto* const rows = static_cast<float*>(buffers.workspace);
  const std::ptrdiff_t stride = rowStride(d);
  constexpr int rowsAtOnce = 16;
  executor.forEach(static_cast<std::size_t>(conv::ceilDivide(d.m, rowsAtOnce)), [&](std::size_t index, int) {
    const int from = static_cast<int>(index) * rowsAtOnce;
    const int to = std::min(d.m, from + rowsAtOnce);
    if (!d.transposeA) {
      for (int i = from; i < to; ++i) std::copy_n(buffers.a + i * d.lda, d.k, rows + i * stride);
      return;
    }
    for (int depth = 0; depth < d.k; ++depth) {
      for (int i = from; i < to; ++i) rows[i * stride + depth] = buffers.a[depth * d.lda + i];
    }
  });
  return rows;
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
  const float* const a = rowsOfA(buffers, executor);
  if (few_) runFew(a, buffers, executor);
  if (!columns_ && !split_) return;
  taccGemmBuffers_t padded = buffers;
  if (description_.bias) {
    // The kernel reads whole blocks of it.
    float* const bias = static_cast<float*>(buffers.workspace) + copiedFloats();
    const auto count = static_cast<std::size_t>(description_.n);
    std::copy_n(buffers.bias, count, bias);
    std::fill_n(bias + count, roundedFloats(count) - count, 0.0F);
    padded.bias = bias;
  }
  if (split_) {
    auto* const workspace = static_cast<std::byte*>(buffers.workspace) + workspaceOfOne();
    split_->run({description_.transposeA ? a : buffers.a, buffers.packedB, description_.bias ? padded.bias : nullptr,
                 buffers.c, workspace - split_->workspaceBytes(splitWorkers())},
                executor);
  }
  if (columns_) runTiles(*columns_, a, padded, executor);
}

void GemmPlan::runFew(const float* a, const taccGemmBuffers_t& buffers, const conv::TaskExecutor& executor) const {
  const Description& d = description_;
  constexpr int rowsOfTask = 64;
  const auto tasks = d.maxWorkers > 1 ? static_cast<std::size_t>(conv::ceilDivide(d.m, rowsOfTask)) : 1;
  executor.forEach(tasks, [&](std::size_t index, int) {
    const int from = static_cast<int>(index) * rowsOfTask;
    const int to = tasks == 1 ? d.m : std::min(d.m, from + rowsOfTask);
    few_->run(a, copiesA() ? rowStride(d) : d.lda, buffers.packedB + packedFew_, buffers.bias, buffers.c, from, to);
  });
}

void GemmPlan::runTiles(const Columns& columns, const float* a, const taccGemmBuffers_t& buffers,
                        const conv::TaskExecutor& executor) const {
  const conv::DirectDriver& driver = columns.driver;
  const conv::TaskPartition partition(driver, 1, 1, description_.m, description_.maxWorkers);
  float* const c = buffers.c + columns.first;
  executor.forEach(partition.tasks(), [&](std::size_t index, int) {
    const conv::TaskPartition::Task task = partition.task(driver, index);
    driver.run({a, buffers.packedB + columns.packed, description_.bias ? buffers.bias + columns.first : nullptr,
                description_.accumulate ? c : nullptr, c, 1, 0, 0, task.tiles.from, task.tiles.to, task.outputs.from,
                task.outputs.to, activationOf(description_)});
  });
}

}  // namespace tacc::gemm
