// Whole blocks of columns on tiles that multiply bfloat16: with float32 split into three parts, by the convolutions'
// kernels for that (conv/amx/bf16x3.hpp), whose pixels are rows of A and whose channels run along its rows.
//
// Some rows of A, and of these as many values as the L2 cache keeps, are split at a time and multiplied with all
// columns, while the next ones are split. B is split when it is packed.
#pragma once

#include <cstddef>
#include <vector>

#include "compute/conv/amx/bf16x3.hpp"
#include "compute/conv/task_executor.hpp"
#include "compute/gemm/gemm_description.hpp"
#include "compute/layers/kernels.hpp"

namespace tacc::gemm {

/// Immutable once made.
class SplitColumns {
 public:
  /// Of the first `columns`, a multiple of 16.
  SplitColumns(const Description& d, int columns, const conv::Bf16x3Kernels& kernels,
               const layers::LayerKernels& transposing);

  std::size_t packedFloats() const;
  void pack(const float* b, float* packed) const;
  /// For that many workers; a multiple of 64.
  std::size_t workspaceBytes(int workers) const;
  /// The model: of all rows, on one worker.
  double cycles() const;

  struct Matrices {
    const float* a;
    const float* packed;
    const float* bias;  // of whole blocks, or null
    float* c;
    std::byte* workspace;
  };
  void run(const Matrices& matrices, const conv::TaskExecutor& executor) const;

 private:
  /// What is split at a time: some rows, and of them some pairs of 16 values.
  struct Piece {
    int row, rows, pair, pairs;
  };
  class Splitting;
  struct Progress;

  int pairs() const;
  int sets() const;
  int pieces() const { return parts_ * chunks_; }
  Piece piece(int index) const;
  std::ptrdiff_t partStep() const { return std::ptrdiff_t{rowsAtOnce_} * conv::rowBytes; }
  std::ptrdiff_t pairStep() const { return partStep() * conv::splitParts; }
  std::size_t splitBytes() const;
  /// Of the rows of a piece, where the values of a pair do not follow each other or are fewer.
  bool copiesPairs() const;
  std::size_t copyBytes() const;
  std::size_t workerBytes() const;
  double packedBytes() const;
  /// Of a tile of B among the packed ones, in bytes.
  std::ptrdiff_t placeOfTile(int pair, int block) const;
  double cyclesFor(int parts, int pairsAtOnce) const;
  /// All columns of some sets of a piece.
  void multiply(const Matrices& matrices, const Piece& piece, const std::byte* split, int firstSet, int endSet,
                float* sums, Progress& progress) const;

  Description d_;
  int columns_;
  const conv::Bf16x3Kernels& kernels_;
  const layers::LayerKernels& transposing_;
  int parts_ = 1, rowsAtOnce_ = 0;    // of the rows
  int chunks_ = 1, pairsAtOnce_ = 0;  // of a row's pairs
  bool fetchesB_ = false;
  std::vector<std::ptrdiff_t> steps_, outputs_;
};

}  // namespace tacc::gemm
