// Fills the table of one instruction set. As in conv/table-inl.hpp: the including file defines TACC_LANES and
// TACC_CONV_ISA, and no standard function may be used in what it includes.
#include "compute/layers/convert-inl.hpp"
#include "compute/layers/dropout-inl.hpp"
#include "compute/layers/inner_products-inl.hpp"
#include "compute/layers/normalization-inl.hpp"
#include "compute/layers/outer_product-inl.hpp"
#include "compute/layers/panel_products-inl.hpp"
#include "compute/layers/pooling-inl.hpp"
#include "compute/layers/response-inl.hpp"
#include "compute/layers/tap_sums-inl.hpp"
#include "compute/layers/training-inl.hpp"
#include "compute/layers/transpose-inl.hpp"

namespace tacc::layers {
namespace TACC_CONV_ISA {

constexpr LayerKernels makeTable(std::string_view isa) {
  return {isa,
          moments,
          gradientSums,
          normalize,
          normalizeGradient,
          response,
          responseGradient,
          dropout,
          sumProducts,
          addProducts,
          sumTaps,
          fromBfloat16,
          toBfloat16,
          toBlocks,
          fromBlocks,
          toTaps,
          fromTaps,
          poolMax,
          poolAverage,
          poolMaxGradient,
          poolAverageGradient,
          poolMaxGradientThree,
          poolAverageGradientThree,
          reluBackward,
          addPixels,
          innerProducts,
          panelProducts,
          transpose,
          gatherRows,
          outerProduct,
          sgdMomentum};
}

}  // namespace TACC_CONV_ISA
}  // namespace tacc::layers
