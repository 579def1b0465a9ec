// Asynchronous EASGD: every rank exchanges with the center when it comes to it, under locks or without (Hogwild).
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "easgd/center.hpp"
#include "easgd/exchange.hpp"
#include "easgd/float_buffer.hpp"

namespace tacc {

/// Rank 0 keeps the center, or the first rank of each host a slice of it; ranks of a keeper's host map what it keeps,
/// others send to it. No rank waits for another, and the death of one that keeps nothing stops nobody. A guest comes to
/// a center that others keep.
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
  std::span<const taccUniqueId> centerIds() const noexcept override { return ids_; }

 private:
  /// Which slice this rank keeps is found by all together; the others' it connects to.
  void keepOrConnect(const CenterOptions& options);
  /// Connects to slices, which are in the order of ids_; `own`: that this process keeps, at `ownIndex`.
  void connect(const CenterOptions& options, std::unique_ptr<Center> own, std::size_t ownIndex);
  bool keeps() const noexcept { return kept_.size() > 0; }
  void meet() { parts_.communicator.run({.collective = Collective::barrier}); }

  const ExchangeParts parts_;
  const bool isGuest_;
  std::vector<taccUniqueId> ids_;   // of the slices
  std::unique_ptr<Center> center_;  // null: there are no weights
  Center* own_ = nullptr;           // the slice that this rank keeps
  std::size_t ownBegin_ = 0;        // its first element
  FloatBuffer kept_;                // of who keeps a slice: what a saved state has of it
  std::uint64_t gaps_ = 0, updatesBetween_ = 0;
};

}  // namespace tacc
