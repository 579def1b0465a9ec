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

/// The first NUMA node, as the kernel numbers them, that has one of these cores; 0 where the kernel does not say.
int numaDomainOf(const cpu_set_t& cores);

/// Bytes of the cache that a core has to itself (its second level); 1 MiB where the system does not say.
std::size_t ownCacheBytes();

}  // namespace tacc
