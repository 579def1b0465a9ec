// The algorithms, each defined in the file of its name.
#pragma once

#include "algorithms/registry.hpp"

namespace tacc {

extern const Algorithm oneshotAlgorithm;
extern const Algorithm twoshotAlgorithm;
extern const Algorithm ringAlgorithm;
extern const Algorithm recursiveDoublingAlgorithm;
extern const Algorithm halvingDoublingFarAlgorithm;
extern const Algorithm halvingDoublingNearAlgorithm;
extern const Algorithm circulantAlgorithm;
extern const Algorithm binomialAlgorithm;
extern const Algorithm knomial4Algorithm;
extern const Algorithm knomial8Algorithm;
extern const Algorithm bineAlgorithm;
extern const Algorithm swingAlgorithm;
extern const Algorithm doubleTreeAlgorithm;
extern const Algorithm chainAlgorithm;
extern const Algorithm circulantPipelineAlgorithm;
extern const Algorithm patAlgorithm;
extern const Algorithm ring2dAlgorithm;
extern const Algorithm hierarchicalAlgorithm;
extern const Algorithm hierarchicalRingAlgorithm;
extern const Algorithm multilaneAlgorithm;
extern const Algorithm groupChainsAlgorithm;
extern const Algorithm parameterServerAlgorithm;

}  // namespace tacc
