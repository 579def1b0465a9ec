// Whether this host has a card for a network of its own kind, which reads and writes memory without the processor. Also
// for the plugin, which has none of the library's functions.
#pragma once

#include <filesystem>
#include <system_error>

namespace tacc {

/// A card of a network that is better than TCP: InfiniBand, RoCE, Omni-Path, EFA, Slingshot or Aries.
inline bool hasFabricDevice() {
  std::error_code none;
  for (const char* cards : {"/sys/class/infiniband", "/sys/class/cxi"})
    if (std::filesystem::is_directory(cards, none) && !std::filesystem::is_empty(cards, none)) return true;
  return std::filesystem::exists("/dev/kgni0", none);
}

}  // namespace tacc
