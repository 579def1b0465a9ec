// Calls the version of a Highway function for a given target. Highway's own HWY_EXPORT and HWY_DYNAMIC_DISPATCH follow
// a state that the whole process shares and that lies in its shared library; changing that for TACC_ISA would change
// the choice of other users of Highway too, and every program would need that library.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compute/simd/targets.hpp"

#if (HWY_TARGETS & (HWY_TARGETS - 1)) == 0
#define TACC_EXPORT(function) static_assert(&HWY_STATIC_DISPATCH(function) != nullptr)
#define TACC_DISPATCH(function, target) ((void)(target), HWY_STATIC_DISPATCH(function))
#else
/// Makes the table of the versions of `function`, in the namespace of the function.
#define TACC_EXPORT(function)                                                                                  \
  constexpr decltype(&HWY_STATIC_DISPATCH(function)) function##ByTarget[] = {HWY_CHOOSE_TARGET_LIST(function), \
                                                                             HWY_CHOOSE_FALLBACK(function)}
/// The version of `function` (which must have been through TACC_EXPORT) for Highway target `target`.
#define TACC_DISPATCH(function, target) (*function##ByTarget[tacc::dispatchIndex(target)])

namespace tacc {

/// Position of `target` in the tables that TACC_EXPORT makes.
inline std::size_t dispatchIndex(std::int64_t target) {
  hwy::ChosenTarget chosen;
  chosen.Update(target);
  return chosen.GetIndex() - 1;  // Highway's tables begin with what chooses
}

}  // namespace tacc
#endif
