#include "compute/conv/cost.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "compute/conv/core_model.hpp"

namespace tacc::conv {
namespace {

/// Multiply-adds that start in a cycle, each of a vector.
double productsPerCycle(const KernelSet& kernels) {
  const CoreModel& core = coreModel();
  if (kernels.fmaLanes == 16 && core.wideProducts == 1) return 1;
  return kernels.blockPixel < blockLength ? core.pairProducts : 2;
}

int vectorsOf(const KernelSet& kernels, double blocks) {
  return static_cast<int>(blocks * blockLength / kernels.fmaLanes);
}

std::size_t readL1CacheBytes() {
#if defined(_SC_LEVEL1_DCACHE_SIZE)
  return static_cast<std::size_t>(std::max(0L, sysconf(_SC_LEVEL1_DCACHE_SIZE)));
#else
  return 0;
#endif
}

std::size_t readL2CacheBytes() {
#if defined(_SC_LEVEL2_CACHE_SIZE)
  const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
#else
  const long bytes = 0;
#endif
  return static_cast<std::size_t>(std::clamp(bytes, 512L * 1024, 2048L * 1024));
}

/// Of so many bytes, those that are not in the L2 cache: of little more than half of it, most are still there.
double bytesBeyondL2(double bytes) {
  if (staysInL2(static_cast<std::size_t>(bytes))) return 0;
  const double half = static_cast<double>(l2CacheBytes()) / 2;
  return std::min(1., (bytes - half) / half) * bytes;
}

}  // namespace

double insidePairs(int results, int taps, int stride, int dilation, int pad, int size) {
  double pairs = 0;
  for (int t = 0; t < taps; ++t) {
    const std::int64_t offset = std::int64_t{t} * dilation - pad;
    const std::int64_t from = offset >= 0 ? 0 : (-offset + stride - 1) / stride;
    const std::int64_t to = size - offset <= 0 ? 0 : (size - offset + stride - 1) / stride;
    pairs += static_cast<double>(std::max<std::int64_t>(0, std::min<std::int64_t>(results, to) - from));
  }
  return pairs;
}

bool hasFarCaches() { return coreModel().hasFarCaches; }

bool areNearHalves(int lanes) { return 2 * lanes == blockLength && !hasFarCaches(); }

double transferCycles(double bytes, double ofMemory) {
  const CoreModel& core = coreModel();
  return bytesBeyondL2(bytes) / (bytes > core.lastCacheBytes ? core.partOfMemory * ofMemory : core.ofLastCache);
}

double halfLineCycles(double bytes, double ofMemory) {
  const CoreModel& core = coreModel();
  const double late = std::min(1., 2 * bytes / core.lastCacheBytes);
  return bytesBeyondL2(bytes) * ((1 - late) / core.ofLastCache + late / (core.partOfMemory * ofMemory));
}

double overlappedCycles(double multiplied, double moved) {
  constexpr double notHidden = 0.6;
  return std::max(multiplied, moved) + (hasFarCaches() ? notHidden * std::min(multiplied, moved) : 0);
}

double streamedCycles(double bytes, double ofMemory) {
  return hasFarCaches() ? bytes / (coreModel().partOfMemory * ofMemory) : transferCycles(bytes, ofMemory);
}

double skippedLineCycles(double floats, double ofLine) {
  if (!hasFarCaches() || staysInL2(static_cast<std::size_t>(floats * sizeof(float)))) return 0;
  return ofLine * floats / blockLength;
}

double storedCycles(double bytes, double lines, double ofLine) {
  static const auto l1Bytes = static_cast<double>(readL1CacheBytes());
  return hasFarCaches() && bytes > l1Bytes ? lines * ofLine : 0;
}

double farTransferCycles(double bytes, double ofMemory) { return hasFarCaches() ? transferCycles(bytes, ofMemory) : 0; }

double bytesOfPhases() { return coreModel().ofPhases; }

std::size_t l2CacheBytes() {
  static const std::size_t bytes = readL2CacheBytes();
  return bytes;
}

bool stayInL1(std::size_t weightBytes) {
  constexpr std::size_t small = 32 * 1024;
  static const std::size_t bytes = readL1CacheBytes();
  return bytes > small && double(weightBytes) <= double(bytes) * 0.5;
}

int linesKept(std::ptrdiff_t floats) {
  constexpr std::ptrdiff_t sets = 64, ways = 8;
  if (floats % blockLength != 0) return sets * ways;
  return static_cast<int>(sets / std::gcd(sets, floats / blockLength) * ways);
}

bool hasTwoWideUnits(const KernelSet& kernels) { return kernels.fmaLanes == 16 && productsPerCycle(kernels) != 1; }

double productCycles(const KernelSet& kernels, double blocks, int used) {
  return blocks * blockLength / kernels.fmaLanes * used / productsPerCycle(kernels);
}

double stepCycles(const KernelSet& kernels, double blocks, int pixels, int used, bool areWeightsNear) {
  const int vectors = vectorsOf(kernels, blocks);
  const int held = heldWeights(kernels.registers, vectors, pixels);
  const double products = vectors * used;
  // Of a step of a single vector, which is a part of a block, what it fetches counts too.
  const double fetches = vectors == 1 && kernels.fmaLanes < blockLength ? 2 : 0;
  const double loads = held + used * (1 + vectors - held) + fetches;
  // Weights that find no register hold multiply-adds up, and not only by loads.
  const double again = 0.17 * used * (vectors - held);
  // Chains of multiply-adds that wait for themselves; where there are just enough of them, the two units do not find
  // the right one in every cycle.
  const double slack = 1 + std::abs(products / 2 - latencyCycles);
  // Where vectors are short, a step of few pixels ends before its weights are there.
  const double fromL2Cache = (kernels.fmaLanes < 16 ? 3.0 : 2.0) * blocks;
  const double weightLine = 0.2;  // what a line of weights costs even where it is hidden
  const double perCycle = productsPerCycle(kernels);
  const double loop = perCycle == 1 ? 0.1 : 0.25;
  const double instructions = products + loads + 3;
  // Small tiles have two sums, which is felt where weights do not take as long.
  if (areWeightsNear && products <= 6) {
    return std::max({products / perCycle, loads / 2, instructions / coreModel().issued, latencyCycles / 2}) + loop;
  }
  return std::max({products / perCycle, loads / 2, instructions / 4, latencyCycles, fromL2Cache}) +
         1 / (slack * slack) + again + loop + weightLine * blocks;
}

double gradientCycles(const KernelSet& kernels, double blocks, int rows) {
  const int vectors = vectorsOf(kernels, blocks);
  const int sets = gradientSets(vectors * rows);
  // Of a single vector that is half a block what is loaded and fetched takes longer than the sums wait for themselves.
  const bool isHalf = vectors == 1 && kernels.fmaLanes < blockLength;
  if (sets == 1 && isHalf) return std::max(latencyCycles, (vectors + rows + 2) / 2.0) + 0.25;
  if (sets == 1) return stepCycles(kernels, blocks, rows, rows);
  // Sums of several sets hardly wait for themselves; what is loaded and fetched for so few of them is more.
  const double loads = vectors + rows + blocks + 1;
  return std::max({productCycles(kernels, blocks, rows), loads / 2, latencyCycles / sets}) + 0.2 * blocks +
         (isHalf ? 1 : 0);
}

double gradientLineCycles(const KernelSet& kernels, double blocks, int rows) {
  constexpr double ofSets = 14;
  return lineCycles + (gradientSets(vectorsOf(kernels, blocks) * rows) == 1 ? 0 : ofSets);
}

double tileCycles(const KernelSet& kernels, double blocks, int pixels) {
  const double accumulators = blocks * blockLength / kernels.fmaLanes * pixels;
  // Cores that are never short of anything but arithmetic hide small tiles' ends behind the next one's beginning.
  return productsPerCycle(kernels) == 1 ? 0.1 * accumulators * accumulators : 20 + 1.5 * accumulators;
}

}  // namespace tacc::conv
