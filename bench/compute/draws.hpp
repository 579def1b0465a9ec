// What layers and products of matrices are drawn with: the same numbers for the same seed on every machine.
#pragma once

#include <cstdint>
#include <random>
#include <string>

namespace tacc::bench {

/// What --random takes: how many, and of which seed.
struct DrawnSet {
  int count = 0;
  std::uint64_t seed = 1;
};

/// Reads "N" or "N:SEED". Throws std::invalid_argument that says what is wrong.
DrawnSet parseDrawnSet(const std::string& text);

/// Not with the standard's distributions, which differ between libraries.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : random_(seed) {}

  int upTo(int most) { return static_cast<int>(random_() % (static_cast<std::uint64_t>(most) + 1)); }
  bool isOnce(int in) { return upTo(in - 1) == 0; }
  /// By its logarithm, from 1; every second one from 8 on a multiple of 8, as networks have them.
  int size(int most);

 private:
  std::mt19937_64 random_;
};

}  // namespace tacc::bench
