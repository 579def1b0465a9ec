// Synchronous EASGD with a center on every rank (Sync 2), and the same beside the program (Sync 3).
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "easgd/exchange.hpp"
#include "easgd/float_buffer.hpp"
#include "easgd/wire.hpp"

namespace tacc {

/// Where ranks of one host reach each other's weights, each makes its part of all weights and of the center new.
/// Elsewhere one streamed sum moves the differences: each rank's are made from its weights and its center, and their
/// sum is added to every center. All centers are equal, bit for bit.
class AveragedExchange : public CenterExchange {
 public:
  explicit AveragedExchange(const ExchangeParts& parts) : AveragedExchange(parts, 1, true, FloatMemory::own) {}
  /// For groups of ranks that have the same weights. `share`: the factor by which this rank's differences count, 1 / n
  /// in a group of n.
  AveragedExchange(const ExchangeParts& parts, float share) : AveragedExchange(parts, share, false, FloatMemory::own) {}

  std::size_t count() const noexcept { return parts_.count; }

  int parts() const noexcept override { return parts_.communicator.ranks(); }
  void start() override;
  void exchange(const LocalStep& step, float alpha) override;
  void readCenter(float* to) override;
  std::vector<std::span<float>> state() override { return {center_.span()}; }
  void restore() override;

 protected:
  /// `mayBeDirect`: where memory allows it; equal on all ranks.
  AveragedExchange(const ExchangeParts& parts, float share, bool mayBeDirect, FloatMemory memory);

  /// Gathers the center's parts, where each rank has made its own new alone.
  void makeCenterWhole();

  const ExchangeParts parts_;
  const float share_;
  const bool mayBeDirect_;
  const Wire wire_;
  FloatBuffer center_;

 private:
  void exchangeByStreaming(const LocalStep& step, float alpha);
  bool exchangeDirectly(const LocalStep& step, float alpha);
  bool isInParts_ = false;  // of the center this rank has only ownPart()
};

/// Makes the center that comes next beside the program, which only reads its weights then. They move when the exchange
/// ends, by the center as it was. Where ranks of one host reach each other's memory, each makes its part of the next
/// center for all; elsewhere it is a streamed sum.
class OverlappedExchange final : public AveragedExchange {
 public:
  explicit OverlappedExchange(const ExchangeParts& parts);
  ~OverlappedExchange() override;

  void start() override;
  void exchange(const LocalStep& step, float alpha) override;
  Begins begins() const noexcept override { return Begins::beforeStep; }
  void begin(float alpha) override;
  void finish(const LocalStep& step, float alpha) override;
  void readCenter(float* to) override;
  std::vector<std::span<float>> state() override { return {center_.span(), next_.span(), underWay_.span()}; }
  void restore() override {}
  double backgroundSeconds() const noexcept override { return seconds_.load(); }

 private:
  void setUnderWay(bool is, float alpha) noexcept;
  bool isUnderWay() const noexcept { return underWay_.data()[0] != 0; }
  /// With nothing beside it weights and all centers can be made new in one pass. False where ranks do not reach them.
  bool exchangeAtOnce(const LocalStep& step, float alpha);
  void makeNext(Communicator& communicator, float alpha);
  bool makeNextDirectly(Communicator& communicator, float alpha);
  void moveWeights(const LocalStep& step);

  FloatBuffer next_;               // the center behind the exchange under way
  FloatBuffer underWay_;           // whether there is one, and its alpha; numbers, as they are saved with the rest
  std::vector<void*> everywhere_;  // where other ranks, or all, have what is made for them
  std::atomic<double> seconds_ = 0;
};

}  // namespace tacc
