// The modes in which rank 0 has the center: one rank after the other (Original), and along trees (Sync 1).
#pragma once

#include "easgd/exchange.hpp"
#include "easgd/float_buffer.hpp"

namespace tacc {

/// What both have in common: the center, and room for a piece of it on every rank.
class RootedExchange : public CenterExchange {
 public:
  explicit RootedExchange(const ExchangeParts& parts);

  int parts() const noexcept override { return parts_.communicator.ranks(); }
  void start() override;
  void readCenter(float* to) override;
  std::vector<std::span<float>> state() override { return {center_.span()}; }

 protected:
  /// Elements of a message. The memory that an exchange needs beside weights and center is two of these.
  static constexpr std::size_t pieceElements = 1 << 20;

  bool isRoot() const noexcept { return parts_.communicator.rank() == 0; }
  std::size_t pieceAt(std::size_t first) const noexcept { return std::min(pieceElements, parts_.count - first); }
  /// This rank's weights move by alpha (x - theirs) and the step; the difference is left in `difference`.
  void pull(const LocalStep& step, float alpha, std::size_t first, std::size_t count, const float* theirs,
            float* difference) const;

  const ExchangeParts parts_;
  FloatBuffer center_;       // of rank 0; empty elsewhere
  FloatBuffer piece_, sum_;  // of a message
};

/// Rank 0 does its own exchange, then rank 1 has its turn, and so on; who waits for its turn does nothing else.
class RoundRobinExchange final : public RootedExchange {
 public:
  using RootedExchange::RootedExchange;
  void exchange(const LocalStep& step, float alpha) override;
};

/// The center is broadcast and the differences are reduced, piece by piece.
class CenterTreeExchange final : public RootedExchange {
 public:
  using RootedExchange::RootedExchange;
  void exchange(const LocalStep& step, float alpha) override;
};

}  // namespace tacc
