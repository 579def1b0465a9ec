#include "compute/gemm_problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>

#include "compute/draws.hpp"

namespace tacc::bench {

std::string GemmShape::text() const {
  const bool isPlain = !transposeA && !transposeB;
  return fmt::format("{}x{}x{}{}", m, n, k,
                     isPlain ? "" : fmt::format(" {}{}", transposeA ? 'T' : 'N', transposeB ? 'T' : 'N'));
}

GemmShape parseGemmShape(const std::string& text, int batch) {
  int sizes[3] = {};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (int i = 0; i < 3; ++i) {
    const auto [next, error] = std::from_chars(at, end, sizes[i]);
    const bool isLast = i == 2;
    if (error != std::errc() || sizes[i] <= 0 || (isLast ? next != end : next == end || *next != 'x')) {
      throw std::invalid_argument(fmt::format("\"{}\" is not a shape: three positive numbers MxNxK", text));
    }
    at = next + (isLast ? 0 : 1);
  }
  return {sizes[0], sizes[1], sizes[2], batch};
}

std::vector<GemmShape> drawGemmShapes(int count, std::uint64_t seed) {
  constexpr int mostOfSize = 2048;
  constexpr double leastOperations = 4e4, mostOperations = 4e9;
  Draws draws(seed);
  std::vector<GemmShape> shapes;
  while (static_cast<int>(shapes.size()) < count) {
    GemmShape shape{};
    for (int* size : {&shape.m, &shape.n, &shape.k}) *size = draws.size(mostOfSize);
    shape.batch = 1;
    if (shape.operations() >= leastOperations && shape.operations() <= mostOperations) shapes.push_back(shape);
  }
  return shapes;
}

GemmProblem::GemmProblem(const GemmShape& theShape)
    : shape(theShape),
      a(static_cast<std::size_t>(shape.batch) * static_cast<std::size_t>(shape.m) * static_cast<std::size_t>(shape.k)),
      b(static_cast<std::size_t>(shape.batch) * static_cast<std::size_t>(shape.k) * static_cast<std::size_t>(shape.n)) {
  tools::fillWithSmallIntegers(a, 1);
  tools::fillWithSmallIntegers(b, 2);
}

std::size_t GemmProblem::resultSize() const {
  return static_cast<std::size_t>(shape.batch) * static_cast<std::size_t>(shape.m) * static_cast<std::size_t>(shape.n);
}

std::size_t GemmProblem::countWrong(const float* c) const {
  constexpr std::size_t samples = 200;
  const auto m = static_cast<std::size_t>(shape.m);
  const auto n = static_cast<std::size_t>(shape.n);
  const auto k = static_cast<std::size_t>(shape.k);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < samples; ++i) {
    // Both ends and a walk over the middle.
    const std::size_t near = std::min(i / 2, resultSize() - 1);
    const std::size_t index = i >= 16 ? i * 2654435761U % resultSize() : i % 2 == 0 ? near : resultSize() - 1 - near;
    const std::size_t product = index / (m * n), row = index / n % m, column = index % n;
    const float* const ofA = a.data() + product * m * k + (shape.transposeA ? row : row * k);
    const float* const ofB = b.data() + product * k * n + (shape.transposeB ? column * k : column);
    double sum = 0;
    for (std::size_t l = 0; l < k; ++l)
      sum += double{ofA[shape.transposeA ? l * m : l]} * ofB[shape.transposeB ? l : l * n];
    wrong += !(c[index] == sum);
  }
  return wrong;
}

const std::vector<GemmPeer>& gemmPeers() {
  static const std::vector<GemmPeer> peers = {
#ifdef TACC_BENCH_ONEDNN
      {"onednn", makeOnednnGemm},
#endif
#ifdef TACC_BENCH_OPENBLAS
      {"openblas", makeOpenblasGemm},
#endif
  };
  return peers;
}

}  // namespace tacc::bench
