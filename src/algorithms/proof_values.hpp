// What a block of memory holds during a proof: whose contributions to which input block, combined in which order.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace tacc::proof {

/// Mixes two numbers into one, differently for (a, b) and (b, a). The last steps are those of splitmix64.
constexpr std::uint64_t mix(std::uint64_t a, std::uint64_t b) noexcept {
  std::uint64_t x = a * 0x9e3779b97f4a7c15ULL + std::rotl(b, 32) + 0x632be59bd9b4e019ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// A value's number; values never change, so a copy is a copy of the number.
using Value = int;
inline constexpr Value undefined = -1;

class Values {
 public:
  explicit Values(int ranks) : words_(static_cast<std::size_t>(ranks + 63) / 64) {}

  /// Block `block` of the input of `rank`.
  Value contribution(int rank, int block) {
    const Value value = append(block, mix(0, static_cast<std::uint64_t>(rank)));
    bits_[value * words_ + static_cast<std::size_t>(rank / 64)] = std::uint64_t{1} << (rank % 64);
    return value;
  }

  /// Begins a value that add() completes.
  Value copyOf(Value value) {
    const Value copy = append(blocks_[value], digests_[value]);
    for (std::size_t w = 0; w < words_; ++w) bits_[copy * words_ + w] = bits_[value * words_ + w];
    sequences_[copy] = sequences_[value];
    return copy;
  }

  /// Adds `other` behind `sum`. Returns a rank that both contain, or -1: none, and done.
  int add(Value sum, Value other) {
    for (std::size_t w = 0; w < words_; ++w) {
      std::uint64_t& word = bits_[sum * words_ + w];
      const std::uint64_t more = bits_[other * words_ + w];
      if ((word & more) != 0) return static_cast<int>(w) * 64 + std::countr_zero(word & more);
      word |= more;
    }
    digests_[sum] = mix(digests_[sum], digests_[other]);
    sequences_[sum] = mix(sequences_[sum], sequences_[other]);
    return -1;
  }

  /// Marks the end of a step: 16-bit types are rounded here, so it is part of the order.
  void round(Value sum) { digests_[sum] = mix(digests_[sum], 1); }

  int blockOf(Value value) const { return blocks_[value]; }
  std::uint64_t orderOf(Value value) const { return digests_[value]; }
  /// The same without the ends of steps.
  std::uint64_t sequenceOf(Value value) const { return sequences_[value]; }
  bool contains(Value value, int rank) const {
    return (bits_[value * words_ + static_cast<std::size_t>(rank / 64)] >> (rank % 64) & 1) != 0;
  }
  /// The lowest and the highest rank that have contributed to a value, which has contributions.
  int lowest(Value value) const {
    std::size_t w = 0;
    while (bits_[value * words_ + w] == 0) ++w;
    return static_cast<int>(w) * 64 + std::countr_zero(bits_[value * words_ + w]);
  }
  int highest(Value value) const {
    std::size_t w = words_ - 1;
    while (bits_[value * words_ + w] == 0) --w;
    return static_cast<int>(w) * 64 + 63 - std::countl_zero(bits_[value * words_ + w]);
  }
  int contributors(Value value) const {
    int count = 0;
    for (std::size_t w = 0; w < words_; ++w) count += std::popcount(bits_[value * words_ + w]);
    return count;
  }

 private:
  Value append(int block, std::uint64_t digest) {
    bits_.resize(bits_.size() + words_, 0);
    blocks_.push_back(block);
    digests_.push_back(digest);
    sequences_.push_back(digest);
    return static_cast<Value>(blocks_.size()) - 1;
  }

  std::size_t words_;  // of 64 ranks, per value
  std::vector<std::uint64_t> bits_;
  std::vector<int> blocks_;  // of the input
  std::vector<std::uint64_t> digests_, sequences_;
};

}  // namespace tacc::proof
