#include "compute/gemm/gemm_prices.hpp"

#include <algorithm>
#include <cmath>

#include "compute/conv/amx/bf16x3_jobs.hpp"
#include "compute/conv/cost.hpp"
#include "compute/conv/shape.hpp"

namespace tacc::gemm {

double withResults(double products, const Description& d, int columns, const LineCycles& ofLine) {
  const double lines = double(d.m) * conv::ceilDivide(columns, conv::blockLength);
  // Of all columns: others of a row are written beside these.
  const std::size_t bytes = static_cast<std::size_t>(d.m) * static_cast<std::size_t>(d.n) * sizeof(float);
  const double cycles = conv::stayInL1(bytes) ? ofLine.inL1 : conv::staysInL2(bytes) ? ofLine.inL2 : ofLine.beyond;
  return std::hypot(products, lines * cycles);
}

double withMatrix(double products, double times, std::size_t packedFloats) {
  const std::size_t bytes = packedFloats * sizeof(float);
  return conv::staysInL2(bytes) ? products
                                : std::max(products, times * static_cast<double>(bytes) / conv::bytesInCycle);
}

}  // namespace tacc::gemm
