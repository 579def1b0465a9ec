// Panels of columns, with small integers, so exactly: of any shape, whether or not a plan would take them.
#include "compute/gemm/panels.hpp"

#include <gmock/gmock.h>

#include <random>

#include "../guarded_buffer.hpp"
#include "compute/conv/shape.hpp"
#include "gemm_case.hpp"

namespace tacc::gemm::test {
namespace {

using tacc::test::PageBuffer;

TEST(Panels, AreExactForAnyRowsAndColumns) {
  std::mt19937 random(21);
  const auto from = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  for (int i = 0; i < 300; ++i) {
    taccGemmDesc_t desc = TACC_GEMM_INITIALIZER;
    desc.m = from(1, 40);
    desc.n = from(1, i % 2 == 0 ? 60 : 400);
    desc.k = from(1, i % 5 == 0 ? 300 : 40);
    desc.transposeB = from(0, 1);
    desc.bias = from(0, 1);
    desc.accumulate = from(0, 1);
    desc.relu = from(0, 1);
    desc.lda = desc.k + from(0, 9);
    desc.ldb = (desc.transposeB != 0 ? desc.k : desc.n) + from(0, 9);
    desc.ldc = desc.n + from(0, 9);
    const int first = from(0, 1) * from(0, (desc.n - 1) / conv::blockLength) * conv::blockLength;
    const Product product(desc);
    const Description& d = product.d;
    Floats bias(static_cast<std::size_t>(d.n + conv::blockLength));  // which kernels read whole blocks of
    std::copy_n(product.bias.data(), d.n, bias.data());
    Floats expected = product.expected();
    for (int row = 0; row < d.m; ++row)
      std::copy_n(product.before.data() + row * d.ldc, first, expected.data() + row * d.ldc);
    for (const conv::KernelSet* kernels : conv::availableKernels()) {
      const Panels panels(d, first, *kernels);
      Floats packed(panels.packedFloats()), c = product.before;
      panels.pack(product.b.data(), packed.data());
      // Any rows and any panels are a part of their own.
      const int middle = from(0, d.m), half = from(0, panels.count());
      for (const RowRange rows : {RowRange{0, middle}, RowRange{middle, d.m}}) {
        for (const auto& [firstPanel, endPanel] : {std::pair(0, half), std::pair(half, panels.count())}) {
          if (rows.count() == 0 || firstPanel == endPanel) continue;
          panels.run(product.a.data(), d.lda, packed.data(), bias.data(), c.data(), rows, firstPanel, endPanel);
        }
      }
      EXPECT_TRUE(c == expected) << d.m << "x" << d.n << "x" << d.k << " from " << first << " " << kernels->isa;
    }
  }
}

TEST(Panels, TouchNothingOutsideTheirMatrices) {
  std::mt19937 random(22);
  const auto from = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  for (int i = 0; i < 60; ++i) {
    taccGemmDesc_t desc = TACC_GEMM_INITIALIZER;
    desc.m = from(1, 20);
    desc.n = from(1, 200);
    desc.k = from(1, 100);
    desc.transposeB = from(0, 1);
    desc.bias = from(0, 1);
    desc.accumulate = from(0, 1);
    desc.relu = from(0, 1);
    const Product product(desc);
    const Floats expected = product.expected();
    const auto biasFloats = static_cast<std::size_t>(conv::roundUp(desc.n, conv::blockLength));
    for (const conv::KernelSet* kernels : conv::availableKernels()) {
      const Panels panels(product.d, 0, *kernels);
      for (const bool isAtEnd : {false, true}) {
        PageBuffer pagesOfA(10), pagesOfB(30), pagesOfPacked(30), pagesOfBias(1), pagesOfC(10);
        const auto place = [&](PageBuffer& pages, std::size_t floats) {
          return reinterpret_cast<float*>(isAtEnd ? pages.atEnd(floats * sizeof(float)) : pages.atBegin());
        };
        float* const a = place(pagesOfA, product.a.size());
        float* const b = place(pagesOfB, product.b.size());
        float* const packed = place(pagesOfPacked, panels.packedFloats());
        float* const bias = place(pagesOfBias, biasFloats);
        float* const c = place(pagesOfC, expected.size());
        std::copy_n(product.a.data(), product.a.size(), a);
        std::copy_n(product.b.data(), product.b.size(), b);
        std::copy_n(product.bias.data(), desc.n, bias);
        std::copy_n(product.before.data(), product.before.size(), c);
        panels.pack(b, packed);
        panels.run(a, desc.k, packed, bias, c, {0, desc.m}, 0, panels.count());
        EXPECT_TRUE(std::equal(expected.data(), expected.data() + expected.size(), c))
            << desc.m << "x" << desc.n << "x" << desc.k << " " << kernels->isa;
      }
    }
  }
}

/// What they are for, and what they are not.
TEST(Panels, AreTakenForFewRowsAndForShortSums) {
  const auto kernelOf = [](int m, int n, int k, const conv::KernelSet& kernels) {
    taccGemmDesc_t desc = TACC_GEMM_INITIALIZER;
    desc.m = m;
    desc.n = n;
    desc.k = k;
    return GemmPlan(understand(desc), kernels).kernel();
  };
  for (const conv::KernelSet* kernels : conv::availableKernels()) {
    if (kernels->isa != "avx512" && kernels->isa != "avx2") continue;
    for (const auto& [m, n, k] : {std::array{1, 1000, 64}, {1, 300, 300}, {2, 256, 128}, {300, 500, 2}, {800, 1500, 4}})
      EXPECT_THAT(kernelOf(m, n, k, *kernels), testing::HasSubstr("panels")) << m << "x" << n << "x" << k;
    for (const auto& [m, n, k] :
         {std::array{300, 500, 1000}, {1000, 16, 64}, {64, 1000, 1024}, {16, 4096, 9216}, {4, 4096, 4096}})
      EXPECT_THAT(kernelOf(m, n, k, *kernels), testing::Not(testing::HasSubstr("panels"))) << m << "x" << n << "x" << k;
  }
}

}  // namespace
}  // namespace tacc::gemm::test
