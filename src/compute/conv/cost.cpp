#include "compute/conv/cost.hpp"

#include <algorithm>

namespace tacc::conv {

double stepCycles(const KernelSet& kernels, int blocks, int pixels) {
  const double vectors = static_cast<double>(blocks) * blockLength / kernels.fmaLanes;
  const double products = vectors * pixels;
  const double loads = vectors + pixels;
  const double latency = 4;
  const double fromSecondCache = 2.0 * blocks;
  const double loop = 0.25;
  return std::max({products / 2, loads / 2, (products + loads + 3) / 4, latency, fromSecondCache}) + loop;
}

double tileCycles(const KernelSet& kernels, int blocks, int pixels) {
  const double vectors = static_cast<double>(blocks) * blockLength / kernels.fmaLanes;
  return 20 + 1.5 * vectors * pixels;
}

}  // namespace tacc::conv
