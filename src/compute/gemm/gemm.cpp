#include "compute/gemm/gemm.hpp"

#include <algorithm>

#include "compute/conv/amx/bf16x3_jobs.hpp"
#include "compute/conv/cost.hpp"
#include "compute/conv/shape.hpp"
#include "core/error.hpp"

namespace tacc::gemm {
namespace {

using conv::blockLength;

constexpr std::size_t roundedFloats(std::size_t floats) { return (floats + 15) / 16 * 16; }

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
  plain_.emplace(description, 0, kernels, splitWorkers());
  if (whole > 0 && kernels.split != nullptr) {
    SplitColumns split(description, whole, *kernels.split, layers::kernelTable(kernels.vectors));
    std::optional<PlainColumns> behind;
    if (whole < description.n) behind.emplace(description, whole, kernels, splitWorkers());
    // At the clock that AMX's tiles leave.
    constexpr double ofClock = conv::plainProductsInCycle / 32;
    if (split.cycles() + (behind ? behind->cycles() : 0) < plain_->cycles() * ofClock) {
      kernel_ = "amx 32x2";
      packedPlain_ = split.packedFloats();
      split_.emplace(std::move(split));
      plain_.reset();
      if (behind) plain_.emplace(std::move(*behind));
    }
  }
  if (!split_) kernel_ = plain_->kernel();
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
  const double cycles = (plain_ ? plain_->cycles() : 0) + (split_ ? split_->cycles() : 0);
  return cycles * description_.batch / conv::assumedHertz;
}

void GemmPlan::pack(const float* b, float* packed) const {
  for (int i = 0; i < description_.batch; ++i) {
    packOne(b + i * description_.strideB, packed + static_cast<std::size_t>(i) * packedOfOne());
  }
}

void GemmPlan::packOne(const float* b, float* packed) const {
  if (split_) split_->pack(b, packed);
  if (plain_) plain_->pack(b, packed + packedPlain_);
}

void GemmPlan::run(const taccGemmBuffers_t& buffers, const conv::TaskExecutor& executor) const {
  const auto product = [&](std::size_t index, int worker) {
    const auto i = static_cast<std::ptrdiff_t>(index);
    taccGemmBuffers_t one = buffers;
    one.a += i * description_.strideA;
    one.packedB += index * packedOfOne();
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
  auto* const workspace = static_cast<float*>(buffers.workspace);
  const float* bias = nullptr;
  if (description_.bias) {
    // Kernels read whole blocks of it.
    float* const padded = workspace + copiedFloats();
    const auto count = static_cast<std::size_t>(description_.n);
    std::copy_n(buffers.bias, count, padded);
    std::fill_n(padded + count, roundedFloats(count) - count, 0.0F);
    bias = padded;
  }
  if (split_) {
    auto* const end = static_cast<std::byte*>(buffers.workspace) + workspaceOfOne();
    split_->run({buffers.a, buffers.packedB, bias, buffers.c, end - split_->workspaceBytes(splitWorkers())}, executor);
  }
  if (plain_) plain_->run(buffers.a, buffers.packedB + packedPlain_, bias, buffers.c, workspace, executor);
}

}  // namespace tacc::gemm
