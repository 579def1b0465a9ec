// A made-up training for tests: gradients that depend on rank, step and weight, and the equations of tacc/easgd.h in
// double, on all ranks at once.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tacc/easgd.h"

namespace tacc::test {

/// The same on every rank: between -1 and 1.
inline double noise(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  std::uint64_t x = a * 0x9e3779b97f4a7c15ULL + b * 0xbf58476d1ce4e5b9ULL + c * 0x94d049bb133111ebULL + 1;
  x ^= x >> 31;
  x *= 0xff51afd7ed558ccdULL;
  x ^= x >> 33;
  return static_cast<double>(x % 20001) / 10000.0 - 1.0;
}

inline float firstWeight(std::size_t i) { return static_cast<float>(noise(1, i, 2)); }
/// Of a bowl whose bottom is another for each rank, with noise.
inline double gradientOf(int rank, int step, std::size_t i, double weight) {
  return weight - 0.5 * rank + 0.3 * noise(static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(step), i);
}

/// All ranks' weights and the center, by the equations. `groups[r]`: that of rank r, in Hierarchical.
struct ReferenceTraining {
  taccEasgdConfig_t config;
  std::vector<std::vector<double>> x, v;
  std::vector<double> c, begun;  // begun: what the stale center becomes at the next exchange
  std::vector<int> groups;
  int steps = 0;

  ReferenceTraining(int ranks, std::size_t count, const taccEasgdConfig_t& configuration)
      : config(configuration),
        x(static_cast<std::size_t>(ranks), std::vector<double>(count)),
        v(x),
        c(count),
        groups(static_cast<std::size_t>(ranks)) {
    for (std::size_t r = 0; r < x.size(); ++r) groups[r] = static_cast<int>(r);
    for (std::size_t i = 0; i < count; ++i) c[i] = firstWeight(i);
    for (auto& weights : x) weights = c;
  }

  double alpha() const {
    const int parts = 1 + *std::max_element(groups.begin(), groups.end());
    return config.elasticity > 0 ? static_cast<double>(config.learningRate) * config.elasticity : 0.9 / parts;
  }

  void exchange() {
    const double a = alpha();
    const std::size_t p = x.size();
    for (std::size_t i = 0; i < c.size(); ++i) {
      if (config.mode == taccEasgdOriginal) {
        for (std::size_t r = 0; r < p; ++r) {
          const double d = a * (x[r][i] - c[i]);
          x[r][i] -= d;
          c[i] += d;
        }
        continue;
      }
      const double old = config.mode == taccEasgdDecentralizedStale && !begun.empty() ? begun[i] : c[i];
      double sum = 0;
      for (std::size_t r = 0; r < p; ++r) {
        const double d = a * (x[r][i] - old);
        sum += d / static_cast<double>(std::count(groups.begin(), groups.end(), groups[r]));
        x[r][i] -= d;
      }
      if (begun.empty()) c[i] += sum;
    }
  }

  void step() {
    ++steps;
    std::vector<std::vector<double>> g = x;
    for (std::size_t r = 0; r < x.size(); ++r)
      for (std::size_t i = 0; i < c.size(); ++i)
        g[r][i] = gradientOf(static_cast<int>(r), steps, i, static_cast<float>(x[r][i]));
    const bool exchanges = steps % config.period == 0;
    if (exchanges) exchange();
    for (std::size_t r = 0; r < x.size(); ++r)
      for (std::size_t i = 0; i < c.size(); ++i) {
        double mean = 0;
        for (std::size_t q = 0; q < x.size(); ++q)
          if (groups[q] == groups[r])
            mean += g[q][i] / static_cast<double>(std::count(groups.begin(), groups.end(), groups[r]));
        v[r][i] = config.momentum * v[r][i] - config.learningRate * mean;
        x[r][i] += v[r][i];
      }
    if (!exchanges || config.mode != taccEasgdDecentralizedStale) return;
    if (!begun.empty()) c = begun;
    begun = c;
    for (std::size_t i = 0; i < c.size(); ++i)
      for (const auto& weights : x) begun[i] += alpha() * (weights[i] - c[i]);
  }

  /// As taccEasgdCenter tells it: with what is under way.
  std::vector<double> center() const {
    if (!begun.empty()) return begun;
    std::vector<double> next = c;
    if (config.mode == taccEasgdSync3 && (steps + 1) % config.period == 0)
      for (std::size_t i = 0; i < c.size(); ++i)
        for (const auto& weights : x) next[i] += alpha() * (weights[i] - c[i]);
    return next;
  }
};

inline void fillGradient(std::vector<float>& gradient, int rank, int step, const float* weights) {
  for (std::size_t i = 0; i < gradient.size(); ++i)
    gradient[i] = static_cast<float>(gradientOf(rank, step, i, weights[i]));
}

}  // namespace tacc::test
