// The model behind the choice of tiles: cycles of one step of a kernel, which is one input value of all its pixels.
#pragma once

#include <cstddef>

#include "compute/conv/kernels/kernels.hpp"

namespace tacc::conv {

/// Of a tile of that many blocks, which may be one and a half. With `used` of its pixels: a mask leaves out the others.
/// A core that loads two vectors, starts two multiply-adds of four cycles and issues four instructions a cycle, and
/// gets half a cache line a cycle from its L2 cache. On cores with less arithmetic all tiles are equally good.
/// `areWeightsNear`: in the L1 cache, from the tile before.
double stepCycles(const KernelSet& kernels, double blocks, int pixels, int used, bool areWeightsNear = false);

/// Whether so many bytes of weights stay in the L1 cache beside what tiles read and write. Of 32 KiB that is not
/// counted on.
bool stayInL1(std::size_t weightBytes);

/// Cycles that the multiply-adds of a step take where nothing else holds them up; and those of each before the next
/// one on the same sum begins.
double productCycles(const KernelSet& kernels, double blocks, int used);
inline constexpr double latencyCycles = 4;

/// Cycles of a gradient kernel for a pixel of a tile of that many blocks and rows.
double gradientCycles(const KernelSet& kernels, double blocks, int rows);

/// What a gradient kernel takes for a line beside its pixels: where few sums are several sets, these are joined.
double gradientLineCycles(const KernelSet& kernels, double blocks, int rows);

/// Cycles of one tile beside its steps: starting, reading and writing the accumulators.
double tileCycles(const KernelSet& kernels, double blocks, int pixels);

/// Beside the products: what a call of a kernel costs, and one of the lines that it goes through.
inline constexpr double callCycles = 40, lineCycles = 6;

/// How many pairs of a result and a tap read something that is inside, in one dimension.
double insidePairs(int results, int taps, int stride, int dilation, int pad, int size);

/// Whether the last cache and memory are so far from a core that they are not hidden (CoreModel).
bool hasFarCaches();

/// Whether vectors of so many lanes are half a block and caches are near: what was measured with AVX2 on a Zen 3 and
/// is nobody else's.
bool areNearHalves(int lanes);

/// Cycles that the caches or memory take at least for `bytes` bytes, if they do not stay in the L2 cache:
/// `ofMemory` bytes a cycle from memory, more from the third cache.
double transferCycles(double bytes, double ofMemory);

/// The same where caches are far, and 0 elsewhere: of what hides behind the products there.
double farTransferCycles(double bytes, double ofMemory);

/// The same of a result that is written, or added to, in half lines of the cache where caches are near: these are
/// waited for, the longer the more of the last cache it takes.
double halfLineCycles(double bytes, double ofMemory);

/// Of channel-wise and grouped kernels, which have little to multiply for what they move: where caches are far, most of
/// the shorter of both is not hidden behind the longer one.
double overlappedCycles(double multiplied, double moved);

/// Of a result that is stored non-temporally: where caches are far it goes to memory, however large they are.
double streamedCycles(double bytes, double ofMemory);

/// Cycles that storing a result of `bytes` bytes takes at least where it leaves the L1 cache, `ofLine` for each of its
/// `lines` lines of the cache; 0 where it stays there, and where caches are near, which has not been measured.
double storedCycles(double bytes, double lines, double ofLine);

/// Cycles that a line of the cache costs beside moving it where strides leave out what is beside it: by itself; that is
/// read over again; and one of several of a pixel, which follow each other.
inline constexpr double cyclesOfSkippedLine = 12, cyclesOfSkippedLineAgain = 6, cyclesOfSkippedPixelLine = 3.5;
/// Of lines that products are made of only strides from this one on leave so many out that it is felt.
inline constexpr int leastSkippingStride = 3;

/// What so many floats cost beside moving them, of which strides leave out what is between, where caches are far and
/// these are not in the L2 cache: `ofLine` cycles for each line of the cache.
double skippedLineCycles(double floats, double ofLine = cyclesOfSkippedLine);

/// Bytes a cycle of a gradient of the input that strides have written phase by phase, in no order that hardware looks
/// ahead in; for transferCycles().
double bytesOfPhases();

/// The L2 cache of this CPU, 512 KiB to 2 MiB; 512 KiB where the system does not tell.
std::size_t l2CacheBytes();

/// Whether a number of bytes are still in the L2 cache when they are read again: something else needs the other half.
inline bool staysInL2(std::size_t bytes) { return bytes <= l2CacheBytes() / 2; }

/// How many lines of the cache, that many floats from one to the next, an L1 cache of 64 sets of 8 lines keeps.
int linesKept(std::ptrdiff_t floats);

/// Whether the kernels start two multiply-adds of 512 bits a cycle on this CPU.
bool hasTwoWideUnits(const KernelSet& kernels);

/// For predictions in seconds. The real one is not known without measuring.
inline constexpr double assumedHertz = 3e9;

}  // namespace tacc::conv
