// Asynchronous EASGD: every rank exchanges with the center when it comes to it, under locks or without (Hogwild).
#pragma once

#include <memory>

#include "easgd/center.hpp"
#include "easgd/exchange.hpp"
#include "easgd/float_buffer.hpp"

namespace tacc {

/// Rank 0 keeps the center; ranks of its host map it, others send to it. No rank waits for another, and the death of
/// one but rank 0 stops nobody. A guest comes to a center that others keep.
class AsynchronousExchange final : public CenterExchange {
 public:
  explicit AsynchronousExchange(const ExchangeParts& parts);

  int parts() const noexcept override { return parts_.communicator.ranks(); }
  void start() override;
  void exchange(const LocalStep& step, float alpha) override;
  void readCenter(float* to) override;
  std::vector<std::span<float>> state() override;
  void restore() override;
  void end() override;
  double staleness() const noexcept override;
  const taccUniqueId* centerId() const noexcept override { return center_ ? &id_ : nullptr; }

 private:
  bool keeps() const noexcept { return !isGuest_ && parts_.communicator.rank() == 0; }
  void meet() { parts_.communicator.run({.collective = Collective::barrier}); }

  const ExchangeParts parts_;
  const bool isGuest_;
  taccUniqueId id_{};
  std::unique_ptr<Center> center_;  // null: there are no weights
  FloatBuffer kept_;                // of who keeps the center: what a saved state has of it
  std::uint64_t gaps_ = 0, updatesBetween_ = 0;
};

}  // namespace tacc
