// Products of matrices of small integers, so that every sum is exact in float32 in any order, against the definition.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "../conv/conv_case.hpp"
#include "../conv/plain_tiles.hpp"
#include "../conv/threaded_executor.hpp"
#include "compute/gemm/gemm.hpp"

namespace tacc::gemm::test {

using conv::test::Floats;
using conv::test::smallInteger;

/// All that this CPU has, and AMX's tiles in plain loops.
inline std::vector<const conv::KernelSet*> kernelsOfAll() {
  std::vector<const conv::KernelSet*> sets = conv::availableKernels();
  sets.push_back(&conv::test::plainTileKernels());
  return sets;
}

inline Floats numbers(std::size_t count, std::uint64_t seed) {
  Floats floats(count);
  for (std::size_t i = 0; i < count; ++i) floats.data()[i] = smallInteger(seed, i, 3);
  return floats;
}

/// A product, filled with small integers.
struct Product {
  explicit Product(const taccGemmDesc_t& desc)
      : d(understand(desc)),
        a(numbers(static_cast<std::size_t>(d.batch * d.strideA), 1)),
        b(numbers(static_cast<std::size_t>(d.batch * d.strideB), 2)),
        bias(numbers(static_cast<std::size_t>(d.n), 3)),
        before(numbers(static_cast<std::size_t>(d.batch * d.strideC), 4)) {}

  /// By the definition, in double.
  Floats expected() const {
    Floats result = before;
    for (int product = 0; product < d.batch; ++product) {
      const float* const left = a.data() + product * d.strideA;
      const float* const right = b.data() + product * d.strideB;
      for (int i = 0; i < d.m; ++i) {
        for (int j = 0; j < d.n; ++j) {
          float& to = result[product * d.strideC + i * d.ldc + j];
          double sum = (d.bias ? bias[j] : 0.0F) + (d.accumulate ? to : 0.0F);
          for (int l = 0; l < d.k; ++l) {
            sum += double(d.transposeA ? left[l * d.lda + i] : left[i * d.lda + l]) *
                   (d.transposeB ? right[j * d.ldb + l] : right[l * d.ldb + j]);
          }
          to = static_cast<float>(d.relu ? std::max(sum, 0.0) : sum);
        }
      }
    }
    return result;
  }

  Description d;
  Floats a, b, bias, before;
};

/// With every instruction set.
inline void expectExact(const taccGemmDesc_t& desc, const taccExecutor_t& executor = *taccSerialExecutor()) {
  const Product product(desc);
  const Description& d = product.d;
  const Floats expected = product.expected();
  for (const conv::KernelSet* kernels : kernelsOfAll()) {
    const GemmPlan plan(d, *kernels);
    Floats packed(plan.packedFloats());
    Floats workspace(plan.workspaceBytes() / sizeof(float));
    std::fill_n(workspace.data(), workspace.size(), 1e30F);
    Floats c = product.before;
    plan.pack(product.b.data(), packed.data());
    plan.run({product.a.data(), packed.data(), product.bias.data(), c.data(), workspace.data(), plan.workspaceBytes()},
             conv::TaskExecutor(executor));
    EXPECT_TRUE(c == expected) << d.batch << " of " << d.m << "x" << d.n << "x" << d.k << " " << plan.kernel();
  }
}

}  // namespace tacc::gemm::test
