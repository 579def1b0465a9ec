#include "comm/settings.hpp"

#include "selection/selection.hpp"

namespace tacc {

CommConfig applyEnvironment(CommConfig config, const Environment& environment) {
  checkAlgorithmName(config.algorithm, "taccConfig_t.algorithm");
  checkAlgorithmName(environment.algorithm, "TACC_ALGO");
  if (!environment.algorithm.empty()) config.algorithm = environment.algorithm;
  if (environment.initTimeout) config.initTimeout = *environment.initTimeout;
  if (environment.operationTimeout) config.operationTimeout = *environment.operationTimeout;
  if (environment.reproducible) config.isReproducible = *environment.reproducible;
  if (environment.halfPartialSums) config.halfPartialSums = *environment.halfPartialSums;
  if (environment.dynamic) config.dynamic = *environment.dynamic;
  return config;
}

}  // namespace tacc
