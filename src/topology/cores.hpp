// The cores of the node that ranks may use, and their caches.
#pragma once

#include <sched.h>

#include <cstddef>
#include <span>

namespace tacc {

/// The cores that the calling thread may run on.
cpu_set_t allowedCores();

/// How many cores ranks with these sets may use together; ranks that are pinned have one each. At least 1.
int countCores(std::span<const cpu_set_t> sets);

/// Bytes of the cache that a core has to itself (its second level); 1 MiB where the system does not say.
std::size_t ownCacheBytes();

}  // namespace tacc
