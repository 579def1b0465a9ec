// Elastic averaging (tacc/easgd.h) as a strategy.
#pragma once

#include "strategy.hpp"

namespace tacc::train {

/// In the order of taccEasgdMode_t.
std::vector<std::string> elasticModeNames();

std::unique_ptr<Strategy> makeElastic(const StrategyOptions& options, Parameters& parameters, taccComm_t comm);

}  // namespace tacc::train
