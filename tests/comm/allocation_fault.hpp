// Fails a chosen allocation of this process, for tests of what happens then. Programs that link allocation_fault.cpp
// have operator new replaced.
#pragma once

#include <cstddef>

namespace tacc::test {

/// The `number`-th allocation from now on, of any thread, throws std::bad_alloc; and all later ones too if `isLasting`.
/// 0: none does.
void failAllocation(long number, bool isLasting = false);

/// Allocations since failAllocation().
long countAllocations();
/// The bytes of the largest of them.
std::size_t largestAllocation();

}  // namespace tacc::test
