#include "comm/settings.hpp"

#include "selection/selection.hpp"

namespace tacc {

CommConfig applyEnvironment(CommConfig config, const Environment& environment) {
  checkAlgorithmName(config.algorithm, "taccConfig_t.algorithm");
  checkAlgorithmName(environment.algorithm, "TACC_ALGO");
  if (!environment.algorithm.empty()) {
    config.algorithm = environment.algorithm;
    config.isAlgorithmWish = true;
  }
  if (environment.initTimeout) config.initTimeout = *environment.initTimeout;
  if (environment.operationTimeout) config.operationTimeout = *environment.operationTimeout;
  if (environment.reproducible) config.isReproducible = *environment.reproducible;
  if (environment.halfPartialSums) config.halfPartialSums = *environment.halfPartialSums;
  if (environment.dynamic) config.dynamic = *environment.dynamic;
  return config;
}

std::string settingsOf(const Environment& environment, const CommConfig& config) {
  return environment.agreed + (config.algorithm.empty() ? "" : " algorithm=" + config.algorithm) +
         (config.isAlgorithmWish ? " wish=1" : "") + (config.isReproducible ? " reproducible=1" : "") +
         (config.halfPartialSums ? " halfPartialSums=1" : "") + (config.dynamic ? "" : " dynamic=0");
}

}  // namespace tacc
