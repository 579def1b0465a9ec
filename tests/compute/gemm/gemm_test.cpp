// Products of matrices against the definition, with small integers, so exactly.
#include "compute/gemm/gemm.hpp"

#include <gmock/gmock.h>

#include <limits>
#include <random>

#include "../guarded_buffer.hpp"
#include "gemm_case.hpp"

namespace tacc::gemm::test {
namespace {

using tacc::test::PageBuffer;

TEST(Gemm, IsExactForEverySizeAndFeature) {
  std::mt19937 random(3);
  const auto from = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  for (int i = 0; i < 300; ++i) {
    taccGemmDesc_t desc = TACC_GEMM_INITIALIZER;
    desc.m = from(1, 40);
    desc.n = from(1, 100);
    desc.k = i % 10 == 0 ? from(1, 900) : from(1, 40);
    desc.transposeA = from(0, 1);
    desc.transposeB = from(0, 1);
    desc.bias = from(0, 1);
    desc.accumulate = from(0, 1);
    desc.relu = from(0, 1);
    if (from(0, 2) == 0) {
      desc.lda = (desc.transposeA != 0 ? desc.m : desc.k) + from(0, 9);
      desc.ldb = (desc.transposeB != 0 ? desc.k : desc.n) + from(0, 9);
      desc.ldc = desc.n + from(0, 9);  // what is between the rows stays
    }
    expectExact(desc);
  }
}

TEST(Gemm, OfFewRowsOrColumnsIsExact) {
  std::mt19937 random(5);
  const auto from = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  for (int i = 0; i < 200; ++i) {
    taccGemmDesc_t desc = TACC_GEMM_INITIALIZER;
    desc.m = i % 2 == 0 ? from(1, 8) : from(1, 200);
    desc.n = i % 2 == 0 ? from(1, 200) : from(1, 20);
    desc.k = i % 3 == 0 ? from(1000, 2500) : from(1, 200);
    desc.transposeA = from(0, 1);
    desc.transposeB = from(0, 1);
    desc.bias = from(0, 1);
    desc.accumulate = from(0, 1);
    desc.relu = from(0, 1);
    desc.batch = from(1, 2);
    desc.maxWorkers = from(1, 3);
    if (from(0, 1) == 0) {
      desc.lda = (desc.transposeA != 0 ? desc.m : desc.k) + from(0, 9);
      desc.ldb = (desc.transposeB != 0 ? desc.k : desc.n) + from(0, 9);
      desc.ldc = desc.n + from(0, 9);
    }
    expectExact(desc, conv::test::ThreadedExecutor(desc.maxWorkers).get());
  }
}

TEST(Gemm, ReadsNothingBehindItsMatrices) {
  // Where numbers behind a row are not finite, sums stay as they are.
  taccGemmDesc_t desc = TACC_GEMM_INITIALIZER;
  desc.m = 11;
  desc.n = 35;
  desc.k = 100;
  desc.lda = 164;
  const Description d = understand(desc);
  Floats a(static_cast<std::size_t>(d.strideA));
  std::fill_n(a.data(), a.size(), std::numeric_limits<float>::quiet_NaN());
  for (int i = 0; i < d.m; ++i) std::fill_n(a.data() + i * d.lda, d.k, 1.0F);
  Floats b(static_cast<std::size_t>(d.strideB));
  std::fill_n(b.data(), b.size(), 1.0F);
  for (const conv::KernelSet* kernels : kernelsOfAll()) {
    const GemmPlan plan(d, *kernels);
    Floats packed(plan.packedFloats()), workspace(plan.workspaceBytes() / sizeof(float)), c(11 * 35);
    plan.pack(b.data(), packed.data());
    plan.run({a.data(), packed.data(), nullptr, c.data(), workspace.data(), plan.workspaceBytes()},
             conv::TaskExecutor(*taccSerialExecutor()));
    for (std::size_t i = 0; i < c.size(); ++i) EXPECT_EQ(c.data()[i], 100) << kernels->isa;
  }
}

/// Nothing outside the matrices is read or written, however they are stored.
TEST(Gemm, TouchesNothingOutsideItsMatrices) {
  std::mt19937 random(12);
  const auto from = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  for (int i = 0; i < 60; ++i) {
    taccGemmDesc_t desc = TACC_GEMM_INITIALIZER;
    desc.m = from(1, 70);
    desc.n = from(1, 70);
    desc.k = i % 3 == 0 ? 512 : from(1, 70);
    desc.transposeA = from(0, 1);
    desc.transposeB = from(0, 1);
    const Product product(desc);
    const Floats expected = product.expected();
    for (const conv::KernelSet* kernels : kernelsOfAll()) {
      const GemmPlan plan(product.d, *kernels);
      for (const bool isAtEnd : {false, true}) {
        PageBuffer pagesOfA(40), pagesOfB(40), pagesOfC(10), pagesOfPacked(80), pagesOfWorkspace(200);
        const auto place = [&](PageBuffer& pages, std::size_t bytes) {
          return reinterpret_cast<float*>(isAtEnd ? pages.atEnd(bytes) : pages.atBegin());
        };
        float* const a = place(pagesOfA, product.a.size() * sizeof(float));
        float* const b = place(pagesOfB, product.b.size() * sizeof(float));
        float* const c = place(pagesOfC, expected.size() * sizeof(float));
        float* const packed = place(pagesOfPacked, plan.packedFloats() * sizeof(float));
        std::copy_n(product.a.data(), product.a.size(), a);
        std::copy_n(product.b.data(), product.b.size(), b);
        plan.pack(b, packed);
        plan.run({a, packed, nullptr, c, place(pagesOfWorkspace, plan.workspaceBytes()), plan.workspaceBytes()},
                 conv::TaskExecutor(*taccSerialExecutor()));
        EXPECT_TRUE(std::equal(expected.data(), expected.data() + expected.size(), c))
            << desc.m << "x" << desc.n << "x" << desc.k << " " << plan.kernel();
      }
    }
  }
}

/// A packed B that is stored past the caches.
TEST(Gemm, OfALargeMatrixIsExact) {
  for (const int transposeB : {0, 1}) {
    taccGemmDesc_t desc = TACC_GEMM_INITIALIZER;
    desc.m = 2;
    desc.n = 2075;
    desc.k = 4100;
    desc.transposeB = transposeB;
    expectExact(desc);
  }
}

/// Some workers share rows, and have copies of all of them; others bring their own.
TEST(Gemm, OfATransposedMatrixIsExactForAnyNumberOfWorkers) {
  for (const int m : {1, 9, 40, 300}) {
    for (const int n : {7, 40, 200}) {
      for (const int workers : {1, 2, 5}) {
        taccGemmDesc_t desc = TACC_GEMM_INITIALIZER;
        desc.m = m;
        desc.n = n;
        desc.k = 37;
        desc.transposeA = 1;
        desc.maxWorkers = workers;
        expectExact(desc, conv::test::ThreadedExecutor(workers).get());
      }
    }
  }
}

TEST(Gemm, OfRowsAPowerOfTwoApartIsExact) {
  for (const int k : {512, 1000, 1024}) {
    for (const int m : {1, 5, 33}) {
      taccGemmDesc_t desc = TACC_GEMM_INITIALIZER;
      desc.m = m;
      desc.n = 40;
      desc.k = k;
      desc.lda = 1024;
      desc.maxWorkers = 3;
      expectExact(desc, conv::test::ThreadedExecutor(3).get());
    }
  }
}

TEST(Gemm, OfBatchesIsExact) {
  std::mt19937 random(4);
  const auto from = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  for (int i = 0; i < 60; ++i) {
    taccGemmDesc_t desc = TACC_GEMM_INITIALIZER;
    desc.m = from(1, 20);
    desc.n = from(1, 40);
    desc.k = from(1, 20);
    desc.batch = from(1, 7);
    desc.maxWorkers = from(1, 5);  // products as tasks, and one after the other
    desc.transposeA = from(0, 1);
    desc.bias = from(0, 1);
    desc.accumulate = from(0, 1);
    if (from(0, 1) == 0) {  // what is between the matrices stays
      desc.strideA = desc.m * desc.k + from(0, 9);
      desc.strideB = desc.k * desc.n + from(0, 9);
      desc.strideC = desc.m * desc.n + from(0, 9);
    }
    expectExact(desc, conv::test::ThreadedExecutor(desc.maxWorkers).get());
  }
}

TEST(Gemm, SaysWhatIsWrong) {
  const auto refusal = [](auto member, auto value) -> std::string {
    taccGemmDesc_t desc = TACC_GEMM_INITIALIZER;
    desc.m = desc.n = desc.k = 5;
    desc.*member = value;
    taccGemmPlan_t plan = nullptr;
    EXPECT_EQ(taccGemmPlanCreate(&plan, &desc), taccInvalidArgument);
    return taccGetLastError(nullptr);
  };
  EXPECT_THAT(refusal(&taccGemmDesc_t::k, 0), testing::HasSubstr("k is 0"));
  EXPECT_THAT(refusal(&taccGemmDesc_t::ldb, 4), testing::HasSubstr("ldb is 4 and a row has 5"));
  EXPECT_THAT(refusal(&taccGemmDesc_t::batch, 0), testing::HasSubstr("batch is 0"));
  EXPECT_THAT(refusal(&taccGemmDesc_t::strideC, 24), testing::HasSubstr("strideC is 24 and a matrix takes 25"));
  EXPECT_THAT(refusal(&taccGemmDesc_t::strideA, std::ptrdiff_t{1} << 62), testing::HasSubstr("address space"));
  EXPECT_THAT(refusal(&taccGemmDesc_t::size, std::size_t{8}), testing::HasSubstr("TACC_GEMM_INITIALIZER"));
}

TEST(Gemm, FromC) {
  taccGemmDesc_t desc = TACC_GEMM_INITIALIZER;
  desc.m = 2;
  desc.n = 3;
  desc.k = 2;
  desc.transposeA = 1;  // which takes a workspace
  taccGemmPlan_t plan = nullptr;
  ASSERT_EQ(taccGemmPlanCreate(&plan, &desc), taccSuccess);
  taccGemmInfo_t info{};
  ASSERT_EQ(taccGemmPlanGetInfo(plan, &info), taccSuccess);
  EXPECT_EQ(info.operations, 24);
  const float a[] = {1, 3, 2, 4};
  const float b[] = {1, 0, 2, 0, 1, 3};
  float c[6] = {};
  Floats packed(info.packedBytes / sizeof(float));
  Floats workspace(info.workspaceBytes / sizeof(float));
  ASSERT_EQ(taccGemmPack(plan, b, packed.data()), taccSuccess);
  taccGemmBuffers_t buffers{a, packed.data(), nullptr, c, workspace.data(), info.workspaceBytes};
  ASSERT_EQ(taccGemmRun(plan, &buffers, taccSerialExecutor()), taccSuccess) << taccGetLastError(nullptr);
  EXPECT_THAT(c, testing::ElementsAre(1, 2, 8, 3, 4, 18));
  buffers.workspaceBytes = 0;
  EXPECT_EQ(taccGemmRun(plan, &buffers, taccSerialExecutor()), taccInvalidArgument);
  EXPECT_EQ(taccGemmPlanDestroy(plan), taccSuccess);
}

}  // namespace
}  // namespace tacc::gemm::test
