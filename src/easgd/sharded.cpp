#include "easgd/sharded.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "easgd/local_step.hpp"

namespace tacc {
namespace {

/// Of a piece: long enough for the full speed of networks, small beside a model.
constexpr std::size_t mostPieceElements = 2 << 20;

std::size_t divideUp(std::size_t a, std::size_t b) { return (a + b - 1) / b; }

}  // namespace

ShardedExchange::ShardedExchange(const ExchangeParts& parts) : parts_(parts), pieceElements_(0), sliceElements_(0) {
  const auto ranks = static_cast<std::size_t>(parts.communicator.ranks());
  sliceElements_ = std::max<std::size_t>(1, divideUp(std::min(parts.count, mostPieceElements), ranks));
  pieceElements_ = sliceElements_ * ranks;
  slices_ = FloatBuffer(divideUp(parts.count, pieceElements_) * sliceElements_);
  padded_ = FloatBuffer(pieceElements_);
  sum_ = FloatBuffer(sliceElements_);
  gathered_ = FloatBuffer(pieceElements_);
}

template <class Work>
void ShardedExchange::forEachPiece(const Work& work) {
  float* own = slices_.data();
  for (std::size_t first = 0; first < parts_.count; first += pieceElements_, own += sliceElements_)
    work(Piece{first, std::min(pieceElements_, parts_.count - first), sliceElements_, own});
}

void ShardedExchange::start() {
  const std::size_t mine = static_cast<std::size_t>(parts_.communicator.rank()) * sliceElements_;
  forEachPiece([&](const Piece& piece) {
    const std::size_t here = mine < piece.count ? std::min(piece.slice, piece.count - mine) : 0;
    if (here > 0) std::memcpy(piece.own, parts_.weights + piece.first + mine, here * sizeof(float));
  });
}

template <class Gathered>
void ShardedExchange::move(Communicator& communicator, const float* weights, float alpha, bool wantsOld,
                           const Gathered& gathered) {
  const auto ranks = static_cast<float>(communicator.ranks());
  const auto gather = [&](const Piece& piece) {
    communicator.run({.collective = Collective::allGather,
                      .send = piece.own,
                      .receive = gathered_.data(),
                      .count = piece.slice,
                      .type = taccFloat32});
    gathered(piece, gathered_.data());
  };
  forEachPiece([&](const Piece& piece) {
    const float* whole = weights + piece.first;
    if (piece.count < pieceElements_) {  // the last: the rest of its slices is zero in weights and center
      std::memcpy(padded_.data(), whole, piece.count * sizeof(float));
      std::fill(padded_.data() + piece.count, padded_.data() + pieceElements_, 0.0f);
      whole = padded_.data();
    }
    communicator.run({.collective = Collective::reduceScatter,
                      .send = whole,
                      .receive = sum_.data(),
                      .count = piece.slice,
                      .type = taccFloat32,
                      .op = taccSum});
    if (wantsOld) gather(piece);
    updateKernels().average(piece.own, sum_.data(), alpha, ranks, piece.slice);
    if (!wantsOld) gather(piece);
  });
}

void ShardedExchange::exchange(const LocalStep& step, float alpha) {
  if (parts_.settings.checksFinite)
    forEachTile(0, parts_.count, [&](std::size_t first, std::size_t n) { checkFinite(parts_.weights, first, n); });
  move(parts_.communicator, parts_.weights, alpha, true, [&](const Piece& piece, const float* center) {
    alignas(64) float difference[updateTile];
    forEachTile(0, piece.count, [&](std::size_t at, std::size_t n) {
      const std::size_t first = piece.first + at;
      updateKernels().differ(difference, parts_.weights + first, center + at, alpha, n);
      step.apply(first, n, difference);
    });
  });
}

void ShardedExchange::readCenter(float* to) {
  forEachPiece([&](const Piece& piece) {
    parts_.communicator.run({.collective = Collective::allGather,
                             .send = piece.own,
                             .receive = gathered_.data(),
                             .count = piece.slice,
                             .type = taccFloat32});
    std::memcpy(to + piece.first, gathered_.data(), piece.count * sizeof(float));
  });
}

StaleShardedExchange::StaleShardedExchange(const ExchangeParts& parts)
    : ShardedExchange(parts), snapshot_(parts.count), center_(parts.count) {}

StaleShardedExchange::~StaleShardedExchange() {
  try {
    parts_.background.wait();
  } catch (...) {  // the program, which ends training, does not want to hear of it
  }
}

void StaleShardedExchange::begin(float alpha) {
  if (parts_.settings.checksFinite)
    forEachTile(0, parts_.count, [&](std::size_t first, std::size_t n) { checkFinite(parts_.weights, first, n); });
  std::copy_n(parts_.weights, parts_.count, snapshot_.data());
  isUnderWay_ = true;
  parts_.background.start([this, alpha](Communicator& communicator) {
    const auto started = std::chrono::steady_clock::now();
    move(communicator, snapshot_.data(), alpha, false, [this](const Piece& piece, const float* center) {
      std::memcpy(center_.data() + piece.first, center, piece.count * sizeof(float));
    });
    seconds_.store(seconds_.load() + std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count());
  });
}

void StaleShardedExchange::finish(const LocalStep& step, float alpha) {
  parts_.background.wait();
  alignas(64) float difference[updateTile];
  forEachTile(0, parts_.count, [&](std::size_t first, std::size_t n) {
    updateKernels().differ(difference, parts_.weights + first, center_.data() + first, alpha, n);
    step.apply(first, n, difference);
  });
}

}  // namespace tacc
