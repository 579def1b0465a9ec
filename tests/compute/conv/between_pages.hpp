// Convolutions whose tensors lie between pages that may not be touched.
#pragma once

#include "conv_case.hpp"

namespace tacc::conv::test {

/// Runs the algorithm that `desc` names, or the chosen one, with every instruction set and that many workers, on
/// tensors at the beginning of their pages, or at the end, and compares exactly.
void expectExactBetweenPages(const taccConvDesc_t& desc, int workers, bool isAtEnd);

}  // namespace tacc::conv::test
