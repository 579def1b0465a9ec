// Random figures that are the same on every machine.
#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>

namespace tacc::test {

/// splitmix64: the same everywhere, as standard distributions are not.
class Draw {
 public:
  explicit Draw(std::uint64_t number) : state_(number * 0x9e3779b97f4a7c15u) {}

  int below(int limit) { return static_cast<int>(next() % static_cast<std::uint64_t>(limit)); }
  int between(int least, int most) { return least + below(most - least + 1); }
  bool chance(double share) { return uniform() < share; }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  double logUniform(double least, double most) { return least * std::pow(most / least, uniform()); }
  template <class T>
  T oneOf(std::initializer_list<T> list) {
    return list.begin()[below(static_cast<int>(list.size()))];
  }

 private:
  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15u;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  std::uint64_t state_;
};

}  // namespace tacc::test
