// What prices know of a kind of CPU, beside its instruction set and the sizes of its caches.
#pragma once

namespace tacc::conv {

/// Cycles are of 3 GHz, as in all prices.
struct CoreModel {
  double wideProducts;    ///< multiply-adds of 512 bits that start in a cycle
  double pairProducts;    ///< the same of pairs of bfloat16
  double issued;          ///< instructions in a cycle, of small tiles
  double shortLoop;       ///< cycles to begin and to leave a loop of a few steps
  double lastCacheBytes;  ///< that are counted on of the last cache
  double streamedBytes;   ///< results of products that are longer are stored past the caches
  double ofLastCache;     ///< bytes that a core gets from it in a cycle
  double partOfMemory;    ///< of the bytes a cycle that plans expect of memory
  double ofPhases;        ///< bytes a cycle of what strides have written phase by phase, for transferCycles()
  double mostOfOneTap;    ///< likewise, at most, where each line of the cache is read for one tap
  double permutedRun;     ///< cycles of a run of permuted values beside its products, where a block is several vectors
  /// Servers of Intel: all cores share a last cache over a mesh, so it and memory are not hidden behind products.
  bool hasFarCaches;
};

/// Zen 3 and 5, Arm and whatever is not known; Zen 4, which runs an instruction of 512 bits as two halves; and servers
/// of Intel, as measured on Emerald Rapids.
inline constexpr CoreModel nearCore{2, 2, 4, 12, 16.0 * 1024 * 1024, 64.0 * 1024 * 1024, 20, 1, 4, 12, 1, false};
inline constexpr CoreModel halvingCore{1, 2, 4, 12, 16.0 * 1024 * 1024, 8.0 * 1024 * 1024, 20, 1, 4, 12, 1, false};
inline constexpr CoreModel meshCore{2, 0.45, 6, 20, 32.0 * 1024 * 1024, 8.0 * 1024 * 1024, 9, 0.45, 9, 7.5, 5, true};
/// Intel's other cores, which take two cycles and more for a multiply-add of pairs too.
inline constexpr CoreModel slowPairsCore{2, 0.45, 4, 12, 16.0 * 1024 * 1024, 8.0 * 1024 * 1024, 20, 1, 4, 12, 1, false};

/// Of this CPU.
const CoreModel& coreModel();

/// For tests: prices are those of `model` from now on, null: of this CPU again. Not while others make plans.
void pretendCoreModel(const CoreModel* model);

}  // namespace tacc::conv
