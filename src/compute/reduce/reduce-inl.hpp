// The reduction kernels: they choose the loop that fits a job's number of sources and destinations.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "compute/reduce/divide.hpp"
#include "compute/reduce/operations-inl.hpp"
#include "compute/reduce/reduce.hpp"
#include "compute/reduce/sweep-inl.hpp"
#include "compute/reduce/traverse-inl.hpp"
#include "compute/simd/lanes-inl.hpp"

#if defined(TACC_COMPUTE_REDUCE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef TACC_COMPUTE_REDUCE_INL
#undef TACC_COMPUTE_REDUCE_INL
#else
#define TACC_COMPUTE_REDUCE_INL
#endif

HWY_BEFORE_NAMESPACE();
namespace tacc {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Sources read in one sweep. With twice as many, CPUs lose track of the streams that they prefetch: from memory that
/// is two times slower.
inline constexpr int sourcesPerSweep = 16;
/// Accumulators kept between sweeps: long enough a run of each source for prefetching, short enough for the first-level
/// cache.
inline constexpr std::size_t tileBytes = 16384;
/// From this many vectors on it pays to begin at an aligned address of the first destination.
inline constexpr std::size_t vectorsWorthAligning = 16;

/// How one job is traversed, see traverse-inl.hpp.
template <class Lanes, class Op>
struct ReduceStep {
  using Memory = typename Lanes::Memory;
  using Tag = typename Lanes::Tag;
  static constexpr std::size_t lanes = hn::MaxLanes(Tag());
  using SomeSources = ManyPointers<const Memory, const void>;
  using SomeDestinations = ManyPointers<Memory, void>;

  /// Instruction sets that today's machines do not run on are not worth the code.
  static constexpr bool hasFixedLoops = HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_NEON;

  const ReduceJob& job;

  HWY_INLINE const Memory* source(int k) const { return static_cast<const Memory*>(job.sources[k]); }

  template <class D>
  HWY_INLINE hn::Vec<D> compute(D d, std::size_t i) const {
    auto a = Lanes::widen(d, hn::LoadU(d, source(0) + i));
    for (int k = 1; k < job.sourceCount; ++k) {
      a = Lanes::template combine<Op>(d, a, Lanes::widen(d, hn::LoadU(d, source(k) + i)));
    }
    return Lanes::narrow(d, job.divisor > 1 ? Lanes::divide(d, a, job.divisor) : a);
  }

  template <class D>
  HWY_INLINE void write(D d, std::size_t i, hn::Vec<D> value) const {
    for (int k = 0; k < job.destinationCount; ++k) {
      hn::StoreU(value, d, static_cast<Memory*>(job.destinations[k]) + i);
    }
  }

  HWY_INLINE std::size_t headLength(std::size_t count) const {
    if (!job.streaming && count < vectorsWorthAligning * lanes) return 0;
    const std::size_t beyond = reinterpret_cast<std::uintptr_t>(job.destinations[0]) % (lanes * sizeof(Memory));
    return (lanes - beyond / sizeof(Memory)) % lanes;
  }

  /// The common cases have loops of their own, with the pointers in registers; all others share two.
  HWY_NOINLINE void run(std::size_t begin, std::size_t end) const {
    if (job.sourceCount > sourcesPerSweep) return runTiles(begin, end);
    if (hasFixedLoops && job.destinationCount == 1) {
      const FixedPointers<Memory, 1> destination(job.destinations);
      if (job.sourceCount == 2) return runFixed<2>(destination, begin, end);
      if (job.sourceCount == 3) return runFixed<3>(destination, begin, end);
      if (job.sourceCount == 4) return runFixed<4>(destination, begin, end);
    }
    if (hasFixedLoops && job.destinationCount == 2 && job.sourceCount == 2) {
      return runFixed<2>(FixedPointers<Memory, 2>(job.destinations), begin, end);
    }
    sweep<Lanes, Op>(FromSource<Lanes>{source(0)}, SomeSources{job.sources + 1, job.sourceCount - 1},
                     toDestinations(SomeDestinations{job.destinations, job.destinationCount}), begin, end);
  }

  template <int kSources, class Destinations>
  HWY_INLINE void runFixed(const Destinations& destinations, std::size_t begin, std::size_t end) const {
    sweep<Lanes, Op>(FromSource<Lanes>{source(0)}, FixedPointers<const Memory, kSources - 1>(job.sources + 1),
                     toDestinations(destinations), begin, end);
  }

  /// Many sources: piece by piece, so that the accumulators between the sweeps stay in the cache.
  HWY_NOINLINE void runTiles(std::size_t begin, std::size_t end) const {
    constexpr std::size_t tileLength = tileBytes / sizeof(typename Lanes::Wide);
    alignas(64) typename Lanes::Wide values[tileLength];
    const auto sink = toDestinations(SomeDestinations{job.destinations, job.destinationCount});
    for (std::size_t from = begin; from < end; from += tileLength) {
      const std::size_t to = end - from < tileLength ? end : from + tileLength;
      const Tile<Lanes> tile{values, from};
      int done = sourcesPerSweep;
      sweep<Lanes, Op>(FromSource<Lanes>{source(0)}, SomeSources{job.sources + 1, done - 1}, tile, from, to);
      for (; job.sourceCount - done > sourcesPerSweep; done += sourcesPerSweep) {
        sweep<Lanes, Op>(tile, SomeSources{job.sources + done, sourcesPerSweep}, tile, from, to);
      }
      sweep<Lanes, Op>(tile, SomeSources{job.sources + done, job.sourceCount - done}, sink, from, to);
    }
  }

  template <class Destinations>
  HWY_INLINE ToDestinations<Lanes, Destinations> toDestinations(const Destinations& destinations) const {
    return {destinations, job.divisor, job.streaming};
  }
};

/// Runs a job for one source or more; integers are not divided.
template <class Lanes, class Op>
HWY_NOINLINE void reduceLanes(const ReduceJob& job) {
  traverse<typename Lanes::Tag>(ReduceStep<Lanes, Op>{job}, job.count);
  if (job.streaming) hwy::FlushStream();
}

/// The kernel of type T, which is reduced as `Lanes`.
template <class T, class Lanes, class Op>
void reduce(const ReduceJob& job) {
  if (job.divisor <= 1) {
    if (job.sourceCount == 1) {
      copyBytes(job.destinations, job.destinationCount, job.sources[0], job.count * sizeof(T), job.streaming);
    } else {
      reduceLanes<Lanes, Op>(job);
    }
    return;
  }
  if constexpr (std::is_integral_v<T>) {
    ReduceJob sum = job;
    sum.destinationCount = 1;
    sum.divisor = 1;
    sum.streaming = false;
    reduce<T, Lanes, Op>(sum);
    divideInPlace(static_cast<T*>(job.destinations[0]), job.count, job.divisor);
    if (job.destinationCount > 1) {
      copyBytes(job.destinations + 1, job.destinationCount - 1, job.destinations[0], job.count * sizeof(T),
                job.streaming);
    }
  } else {
    reduceLanes<Lanes, Op>(job);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tacc
HWY_AFTER_NAMESPACE();

#endif
