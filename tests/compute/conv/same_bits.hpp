// Results that may not depend on who computes what.
#pragma once

#include "conv_case.hpp"

namespace tacc::conv::test {

/// Runs the algorithm that `desc` names, or the chosen one, with every instruction set on one worker and on 2 to
/// `mostWorkers`, and compares bits. The numbers are no integers: an order of summing that changes would show.
void expectSameBitsForEveryNumberOfThreads(const taccConvDesc_t& desc, int mostWorkers);

}  // namespace tacc::conv::test
