// A product of matrices, checked.
#pragma once

#include <cstddef>

namespace tacc::gemm {

struct Description {
  int m, n, k;
  std::ptrdiff_t lda, ldb, ldc;
  bool transposeA, transposeB, bias, accumulate, relu;
  int maxWorkers;
  int batch;
  std::ptrdiff_t strideA, strideB, strideC;  // from product to product
};

}  // namespace tacc::gemm
