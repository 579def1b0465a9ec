// Calls the version of a Highway function for a given target. Highway's own HWY_DYNAMIC_DISPATCH follows a state that
// the whole process shares; changing that for TACC_ISA would change the choice of other users of Highway too.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compute/simd/targets.hpp"

#if (HWY_TARGETS & (HWY_TARGETS - 1)) == 0
#define TACC_DISPATCH(function, target) ((void)(target), HWY_STATIC_DISPATCH(function))
#else
/// The version of `function` (which must have been through HWY_EXPORT) for Highway target `target`.
#define TACC_DISPATCH(function, target) (*HWY_DISPATCH_TABLE(function)[tacc::dispatchIndex(target)])

namespace tacc {

/// Position of `target` in the tables that HWY_EXPORT makes.
inline std::size_t dispatchIndex(std::int64_t target) {
  hwy::ChosenTarget chosen;
  chosen.Update(target);
  return chosen.GetIndex();
}

}  // namespace tacc
#endif
