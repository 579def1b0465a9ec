// How much memory this process can still get before the kernel starts to kill.
#pragma once

#include <cstddef>
#include <string>

namespace tacc {

/// Bytes that can be committed now: the least of what the machine has available (with swap) and what every control
/// group above this process leaves (versions 1 and 2). Unknown limits do not count. A look at a few files, about 0.1
/// ms. `root` is put before their paths, for recorded machines.
std::size_t availableMemory(const std::string& root = "");

}  // namespace tacc
