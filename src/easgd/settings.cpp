#include "easgd/settings.hpp"

#include <cmath>
#include <cstddef>
#include <cstring>

#include "core/error.hpp"
#include "easgd/modes.hpp"

namespace tacc {

EasgdSettings checkEasgdConfig(const taccEasgdConfig_t* config) {
  constexpr taccEasgdConfig_t usual = TACC_EASGD_CONFIG_INITIALIZER;
  if (config == nullptr) config = &usual;
  // The first version's ended there.
  constexpr std::size_t leastSize = offsetof(taccEasgdConfig_t, servers);
  taccEasgdConfig_t older = usual;
  if (config->size >= leastSize && config->size < sizeof older) {
    std::memcpy(static_cast<void*>(&older), config, config->size);
    config = &older;
  }
  if (config->size < leastSize || config->version == 0)
    fail(taccInvalidArgument,
         "config was not made from TACC_EASGD_CONFIG_INITIALIZER: its size is {} and its version {}, and those of this "
         "library are {} and {}",
         config->size, config->version, sizeof(taccEasgdConfig_t), TACC_VERSION_CODE);
  if (config->mode < 0 || config->mode >= taccEasgdNumModes)
    fail(taccInvalidArgument, "config.mode is {}; modes are 0 to {}", static_cast<int>(config->mode),
         taccEasgdNumModes - 1);
  const EasgdMode& mode = easgdMode(config->mode);
  if (!(config->learningRate > 0) || !std::isfinite(config->learningRate))
    fail(taccInvalidArgument, "config.learningRate is {}; it must be above 0", config->learningRate);
  if (!(config->elasticity >= 0) || !std::isfinite(config->elasticity))
    fail(taccInvalidArgument,
         "config.elasticity is {}; it must be 0 or more: a center that pushes weights away would "
         "not hold them together",
         config->elasticity);
  if (!(config->momentum >= 0) || !(config->momentum < 1))
    fail(taccInvalidArgument, "config.momentum is {}; it must be at least 0 and less than 1", config->momentum);
  if (config->period < 1)
    fail(taccInvalidArgument, "config.period is {}; every tau-th step exchanges, with tau 1 or more", config->period);
  if (config->wire < taccEasgdWire32 || config->wire > taccEasgdWireFloat16)
    fail(taccInvalidArgument, "config.wire is {}; wires are 0 to {}", static_cast<int>(config->wire),
         static_cast<int>(taccEasgdWireFloat16));
  if (config->wire != taccEasgdWire32 && !mode.hasWires)
    fail(taccInvalidArgument, "config.wire asks for 16 bits, which mode {} has not; sync2, sync3 and hierarchical have",
         mode.name);
  if (config->group < taccEasgdGroupHost || config->group > taccEasgdGroupColor)
    fail(taccInvalidArgument, "config.group is {}; groups are 0 to {}", static_cast<int>(config->group),
         static_cast<int>(taccEasgdGroupColor));
  if (config->group == taccEasgdGroupColor && config->color < 0)
    fail(taccInvalidArgument, "config.color is {}; colors are 0 or more", config->color);
  if (config->servers != taccEasgdServerRank0 && config->servers != taccEasgdServerPerHost)
    fail(taccInvalidArgument, "config.servers is {}; it is 0, rank 0, or 1, the first rank of every host",
         static_cast<int>(config->servers));
  if (config->servers != taccEasgdServerRank0 && mode.isSynchronous)
    fail(taccInvalidArgument,
         "config.servers asks for a server on every host, and mode {} has none; async and hogwild have", mode.name);
  return {.mode = config->mode,
          .rate = config->learningRate,
          .elasticity = config->elasticity,
          .momentum = config->momentum,
          .period = config->period,
          .wire = config->wire,
          .group = config->group,
          .color = config->color,
          .allowsUnstable = config->allowUnstable != 0,
          .checksFinite = config->checkFinite != 0,
          .servers = config->servers,
          .centers = {}};
}

void checkStability(const EasgdSettings& settings, int parts) {
  const float alpha = settings.alpha(parts);
  const float beta = alpha * static_cast<float>(parts);
  if (beta <= 1 || settings.allowsUnstable) return;
  fail(taccInvalidArgument,
       "learning rate {} times elasticity {} is an alpha of {}, with which {} parts move the center by {} times their "
       "mean distance from it: above 1 it overshoots. An elasticity of at most {} is stable; allowUnstable = 1 lets it "
       "be",
       settings.rate, settings.elasticity, alpha, parts, beta, 1 / (settings.rate * static_cast<float>(parts)));
}

}  // namespace tacc
