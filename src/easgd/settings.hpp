// Options of EASGD after checking (see taccEasgdConfig_t), and what follows from them.
#pragma once

#include <vector>

#include "tacc/easgd.h"

namespace tacc {

struct EasgdSettings {
  taccEasgdMode_t mode = taccEasgdSync2;
  float rate = 0.01f;
  float elasticity = 0;  // 0: parts * alpha is 0.9
  float momentum = 0;
  int period = 1;
  taccEasgdWire_t wire = taccEasgdWire32;
  taccEasgdGroup_t group = taccEasgdGroupHost;
  int color = 0;
  bool allowsUnstable = false;
  bool checksFinite = false;
  taccEasgdServers_t servers = taccEasgdServerRank0;
  std::vector<taccUniqueId> centers;  // of an asynchronous mode: slices of a center that others keep

  /// The equations' alpha in an exchange of `parts` parts: ranks, or groups that move together.
  float alpha(int parts) const noexcept {
    return elasticity > 0 ? rate * elasticity : 0.9f / static_cast<float>(parts);
  }
};

/// Fails with what is wrong with a configuration by itself. Null: the default.
EasgdSettings checkEasgdConfig(const taccEasgdConfig_t* config);

/// Fails where the center would not stay in its bounds (see taccEasgdConfig_t.allowUnstable). `parts`: that move it at
/// the same time.
void checkStability(const EasgdSettings& settings, int parts);

}  // namespace tacc
