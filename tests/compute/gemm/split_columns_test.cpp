// Products of matrices on AMX's tiles, as this CPU has them or in plain loops.
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <random>

#include "../guarded_buffer.hpp"
#include "gemm_case.hpp"

namespace tacc::gemm::test {
namespace {

using tacc::test::PageBuffer;

std::vector<const conv::KernelSet*> splittingKernels() {
  std::vector<const conv::KernelSet*> sets = kernelsOfAll();
  std::erase_if(sets, [](const conv::KernelSet* set) { return set->split == nullptr; });
  return sets;
}

taccGemmDesc_t product(int m, int n, int k) {
  taccGemmDesc_t desc = TACC_GEMM_INITIALIZER;
  desc.m = m;
  desc.n = n;
  desc.k = k;
  return desc;
}

bool isOnTiles(const taccGemmDesc_t& desc, const conv::KernelSet& kernels) {
  return GemmPlan(understand(desc), kernels).kernel() == "amx 32x2";
}

/// Whatever they cost.
void expectColumnsExact(const taccGemmDesc_t& desc, const taccExecutor_t& executor) {
  const Product product(desc);
  const Description& d = product.d;
  const int columns = d.n / conv::blockLength * conv::blockLength;
  const Floats all = product.expected();
  Floats expected = product.before;
  for (int i = 0; i < d.m; ++i) std::copy_n(all.data() + i * d.ldc, columns, expected.data() + i * d.ldc);
  for (const conv::KernelSet* kernels : splittingKernels()) {
    const SplitColumns split(d, columns, *kernels->split, layers::kernelTable(kernels->vectors));
    Floats packed(split.packedFloats());
    Floats workspace(split.workspaceBytes(d.maxWorkers) / sizeof(float));
    std::fill_n(workspace.data(), workspace.size(), 1e30F);
    Floats c = product.before;
    split.pack(product.b.data(), packed.data());
    split.run({product.a.data(), packed.data(), d.bias ? product.bias.data() : nullptr, c.data(),
               reinterpret_cast<std::byte*>(workspace.data())},
              conv::TaskExecutor(executor));
    EXPECT_TRUE(c == expected) << d.m << "x" << d.n << "x" << d.k << " " << kernels->isa;
  }
}

TEST(SplitColumns, AreExactForEverySizeAndFeature) {
  std::mt19937 random(11);
  const auto from = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  int onTiles = 0;
  for (int i = 0; i < 60; ++i) {
    taccGemmDesc_t desc = product(from(1, 150), from(16, 110), from(1, 140));
    desc.transposeA = from(0, 1);
    desc.transposeB = from(0, 1);
    desc.bias = from(0, 1);
    desc.accumulate = from(0, 1);
    desc.relu = from(0, 1);
    desc.batch = from(0, 3) == 0 ? from(2, 4) : 1;
    desc.maxWorkers = from(1, 4);
    if (from(0, 1) == 0) {
      desc.lda = (desc.transposeA != 0 ? desc.m : desc.k) + from(0, 9);
      desc.ldb = (desc.transposeB != 0 ? desc.k : desc.n) + from(0, 9);
      desc.ldc = desc.n + from(0, 9);
    }
    onTiles += isOnTiles(desc, conv::test::plainTileKernels()) ? 1 : 0;
    const conv::test::ThreadedExecutor threads(desc.maxWorkers);
    expectExact(desc, threads.get());
    if (desc.batch == 1) expectColumnsExact(desc, threads.get());
  }
  EXPECT_GE(onTiles, 30);
}

/// Rows that are longer than what is split of them at a time: the sums go through C, and the epilogue comes last.
TEST(SplitColumns, OfLongRowsAreExact) {
  for (const int k : {2048, 2049, 2100, 4133}) {
    for (const int workers : {1, 3}) {
      taccGemmDesc_t desc = product(70, 48, k);
      desc.bias = desc.relu = 1;
      desc.accumulate = workers == 1 ? 1 : 0;
      desc.maxWorkers = workers;
      const conv::test::ThreadedExecutor threads(workers);
      expectExact(desc, threads.get());
      expectColumnsExact(desc, threads.get());
    }
  }
}

/// As many rows as take several parts.
TEST(SplitColumns, OfManyRowsAreExact) {
  for (const int workers : {1, 2, 3}) {
    taccGemmDesc_t desc = product(400, 40, 520);
    desc.maxWorkers = workers;
    const conv::test::ThreadedExecutor threads(workers);
    expectExact(desc, threads.get());
    expectColumnsExact(desc, threads.get());
  }
}

Floats anyNumbers(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Floats numbers(count);
  for (std::size_t i = 0; i < count; ++i) numbers.data()[i] = normal(random);
  return numbers;
}

Floats run(const GemmPlan& plan, const Floats& a, const Floats& b, std::size_t results) {
  Floats packed(plan.packedFloats()), workspace(plan.workspaceBytes() / sizeof(float)), c(results);
  plan.pack(b.data(), packed.data());
  plan.run({a.data(), packed.data(), nullptr, c.data(), workspace.data(), plan.workspaceBytes()},
           conv::TaskExecutor(*taccSerialExecutor()));
  return c;
}

TEST(SplitColumns, AreTheSameBitsForEveryNumberOfThreads) {
  taccGemmDesc_t desc = product(130, 80, 2300);
  desc.maxWorkers = 4;
  const Description d = understand(desc);
  const Floats a = anyNumbers(130 * 2300, 1), b = anyNumbers(2300 * 80, 2);
  for (const conv::KernelSet* kernels : splittingKernels()) {
    const SplitColumns split(d, 80, *kernels->split, layers::kernelTable(kernels->vectors));
    Floats packed(split.packedFloats()), workspace(split.workspaceBytes(4) / sizeof(float));
    split.pack(b.data(), packed.data());
    const auto results = [&](const taccExecutor_t& executor) {
      Floats c(130 * 80);
      split.run({a.data(), packed.data(), nullptr, c.data(), reinterpret_cast<std::byte*>(workspace.data())},
                conv::TaskExecutor(executor));
      return c;
    };
    const Floats alone = results(*taccSerialExecutor());
    for (const int workers : {2, 3, 4})
      EXPECT_TRUE(results(conv::test::ThreadedExecutor(workers).get()) == alone) << kernels->isa;
  }
}

/// Of results, in units of 2^-24 times the sum of the products' magnitudes.
double largestError(const Floats& c, const Floats& a, const Floats& b, int m, int n, int k) {
  double largest = 0;
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      double sum = 0, scale = 0;
      for (int l = 0; l < k; ++l) {
        const double one = double(a[std::ptrdiff_t{i} * k + l]) * b[std::ptrdiff_t{l} * n + j];
        sum += one;
        scale += std::abs(one);
      }
      largest = std::max(largest, std::abs(c[std::ptrdiff_t{i} * n + j] - sum) * 0x1p24 / scale);
    }
  }
  return largest;
}

TEST(SplitColumns, ErrorsAreThoseOfFloat32) {
  for (const int k : {1, 2, 30, 32, 64, 300, 2500}) {
    constexpr int m = 64, n = 64;
    const Floats a = anyNumbers(static_cast<std::size_t>(m * k), 3), b = anyNumbers(static_cast<std::size_t>(k * n), 4);
    const Description d = understand(product(m, n, k));
    const double plain = largestError(run(GemmPlan(d, conv::portableKernels()), a, b, m * n), a, b, m, n, k);
    for (const conv::KernelSet* kernels : splittingKernels()) {
      const GemmPlan plan(d, *kernels);
      if (kernels == &conv::test::plainTileKernels() && k > 2) {  // shorter sums are not worth its tiles
        EXPECT_EQ(plan.kernel(), "amx 32x2");
      }
      const double error = largestError(run(plan, a, b, m * n), a, b, m, n, k);
      std::printf("%d values on %s: split %.2f, float32 %.2f\n", k, std::string(kernels->isa).c_str(), error, plain);
      EXPECT_LT(error, std::max(4.0, 1.5 * plain)) << k << " " << kernels->isa;
    }
  }
}

TEST(SplitColumns, TouchNothingOutsideTheirBuffers) {
  for (const auto& [m, n, k] : {std::array{33, 32, 70}, {1, 16, 33}, {64, 48, 64}, {45, 36, 2100}}) {
    taccGemmDesc_t desc = product(m, n, k);
    const Description d = understand(desc);
    const auto sizeOf = [](int rows, int columns) { return static_cast<std::size_t>(rows) * columns * sizeof(float); };
    const Floats a = numbers(static_cast<std::size_t>(m * k), 1), b = numbers(static_cast<std::size_t>(k * n), 2);
    for (const conv::KernelSet* kernels : splittingKernels()) {
      const GemmPlan plan(d, *kernels);
      const Floats expected = run(GemmPlan(d, conv::portableKernels()), a, b, static_cast<std::size_t>(m * n));
      for (const bool isAtEnd : {false, true}) {
        PageBuffer pagesOfA(100), pagesOfB(100), pagesOfC(10), pagesOfPacked(200), pagesOfWorkspace(400);
        const auto place = [&](PageBuffer& pages, std::size_t bytes) {
          return reinterpret_cast<float*>(isAtEnd ? pages.atEnd(bytes) : pages.atBegin());
        };
        float* const onA = place(pagesOfA, sizeOf(m, k));
        float* const onB = place(pagesOfB, sizeOf(k, n));
        float* const onC = place(pagesOfC, sizeOf(m, n));
        float* const packed = place(pagesOfPacked, plan.packedFloats() * sizeof(float));
        std::memcpy(onA, a.data(), sizeOf(m, k));
        std::memcpy(onB, b.data(), sizeOf(k, n));
        plan.pack(onB, packed);
        plan.run({onA, packed, nullptr, onC, place(pagesOfWorkspace, plan.workspaceBytes()), plan.workspaceBytes()},
                 conv::TaskExecutor(*taccSerialExecutor()));
        EXPECT_EQ(std::memcmp(onC, expected.data(), sizeOf(m, n)), 0) << m << " " << n << " " << k << kernels->isa;
      }
    }
  }
}

/// Few columns are not worth the splitting, by the model.
TEST(SplitColumns, AreTakenWhereTheyPay) {
  for (const conv::KernelSet* kernels : splittingKernels()) {
    EXPECT_TRUE(isOnTiles(product(1024, 1024, 1024), *kernels)) << kernels->isa;
    if (kernels->fmaLanes == 16) {
      EXPECT_FALSE(isOnTiles(product(1024, 16, 1024), *kernels)) << kernels->isa;
    }
    EXPECT_FALSE(isOnTiles(product(1024, 15, 1024), *kernels)) << kernels->isa;
  }
}

}  // namespace
}  // namespace tacc::gemm::test
