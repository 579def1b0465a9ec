// EASGD without a server and without a whole center: every rank keeps a slice of it (our reading of swFLOW).
#pragma once

#include <atomic>

#include "easgd/exchange.hpp"
#include "easgd/float_buffer.hpp"

namespace tacc {

/// Weights are reduce-scattered, each rank makes its slice of the center new, and slices are gathered; in pieces, so
/// that what is gathered needs little memory. Slice r of a piece is rank r's.
class ShardedExchange : public CenterExchange {
 public:
  explicit ShardedExchange(const ExchangeParts& parts);

  int parts() const noexcept override { return parts_.communicator.ranks(); }
  void start() override;
  void exchange(const LocalStep& step, float alpha) override;
  void readCenter(float* to) override;
  std::vector<std::span<float>> state() override { return {slices_.span()}; }

 protected:
  /// Where piece k lies: its elements, of which the last piece has fewer than its slices hold.
  struct Piece {
    std::size_t first, count, slice;
    float* own;  // this rank's slice of the center
  };
  template <class Work>
  void forEachPiece(const Work& work);
  /// Moves the slices of the center by `weights`. `gathered(piece, center)` is given each piece of the center as it was
  /// before or is afterwards.
  template <class Gathered>
  void move(Communicator& communicator, const float* weights, float alpha, bool wantsOld, const Gathered& gathered);

  const ExchangeParts parts_;
  std::size_t pieceElements_, sliceElements_;
  FloatBuffer slices_;                   // of the pieces, one behind the other
  FloatBuffer padded_, sum_, gathered_;  // of a piece, of a slice, of a piece
};

/// The center moves by the weights of one exchange before, beside the steps in between.
class StaleShardedExchange final : public ShardedExchange {
 public:
  explicit StaleShardedExchange(const ExchangeParts& parts);
  ~StaleShardedExchange() override;

  Begins begins() const noexcept override { return Begins::afterExchange; }
  void begin(float alpha) override;
  void finish(const LocalStep& step, float alpha) override;
  std::vector<std::span<float>> state() override { return {slices_.span(), center_.span()}; }
  double staleness() const noexcept override { return isUnderWay_ ? parts_.communicator.ranks() - 1 : 0; }
  double backgroundSeconds() const noexcept override { return seconds_.load(); }

 private:
  FloatBuffer snapshot_;  // of the weights by which the center moves
  FloatBuffer center_;    // as it is then
  bool isUnderWay_ = false;
  std::atomic<double> seconds_ = 0;
};

}  // namespace tacc
