// Random numbers that are the same everywhere: the standard fixes its generators, but not its distributions.
#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <utility>
#include <vector>

namespace tacc::train {

class Random {
 public:
  /// Every list of numbers gives a stream of its own.
  Random(std::initializer_list<std::uint64_t> seeds) {
    std::uint64_t state = 0;
    for (const std::uint64_t seed : seeds) state = mix(state ^ mix(seed + 1));
    engine_.seed(state);
  }

  /// From 0 to below 1.
  double uniform() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
  double between(double low, double high) { return low + (high - low) * uniform(); }
  /// From 0 to count - 1.
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(uniform() * static_cast<double>(count)); }
  /// Mean 0, deviation 1.
  double normal() {
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(2 * M_PI * uniform());
  }
  template <class Value>
  void shuffle(std::vector<Value>& values) {
    for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[below(i)]);
  }

 private:
  static std::uint64_t mix(std::uint64_t x) {  // splitmix64's, so that near seeds give streams far from each other
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
  }

  std::mt19937_64 engine_;
};

}  // namespace tacc::train
