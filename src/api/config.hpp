// taccConfig_t as the program gave it, of whatever version, to CommConfig.
#pragma once

#include "comm/communicator.hpp"
#include "tacc/tacc.h"

namespace tacc {

/// Checks every field. Fields that the program's older header did not have get their defaults. Null: all defaults.
CommConfig checkConfig(const taccConfig_t* config);

}  // namespace tacc
