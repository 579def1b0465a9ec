#pragma once

#include <string>

#include "tacc/tacc.h"

namespace tacc::bench {

/// A unique id as one word, and back. Throws std::invalid_argument where it is none.
std::string toHex(const taccUniqueId& id);
taccUniqueId fromHex(const std::string& text);

}  // namespace tacc::bench
