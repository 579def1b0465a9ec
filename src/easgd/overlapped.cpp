// Sync 3: see averaged.hpp.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "easgd/averaged.hpp"
#include "easgd/local_step.hpp"
#include "engine/direct_update.hpp"
#include "engine/signature.hpp"
#include "engine/streamed_sum.hpp"

namespace tacc {

OverlappedExchange::OverlappedExchange(const ExchangeParts& parts)
    : AveragedExchange(parts, 1, true, FloatMemory::library), next_(parts.count, FloatMemory::library), underWay_(2) {}

OverlappedExchange::~OverlappedExchange() {
  try {
    parts_.background.wait();
  } catch (...) {  // the program, which ends training, does not want to hear of it
  }
}

void OverlappedExchange::setUnderWay(bool is, float alpha) noexcept {
  underWay_.data()[0] = is ? 1 : 0;
  underWay_.data()[1] = alpha;
}

void OverlappedExchange::start() {
  AveragedExchange::start();
  setUnderWay(false, 0);
}

bool OverlappedExchange::makeNextDirectly(Communicator& communicator, float alpha) {
  if (!mayBeDirect_) return false;
  const UpdateKernels& kernels = updateKernels();
  const auto ranks = static_cast<std::size_t>(communicator.ranks());
  everywhere_.resize(ranks);
  const auto update = [&](std::size_t first, std::size_t count, float* const* next, float* const* weights) {
    alignas(64) float difference[updateTile], sum[updateTile];
    forEachTile(first, count, [&](std::size_t at, std::size_t n) {
      for (std::size_t r = 0; r < ranks; ++r) {
        if (parts_.settings.checksFinite) checkFinite(weights[r], at, n);
        kernels.differ(r == 0 ? sum : difference, weights[r] + at, center_.data() + at, alpha, n);
        if (r > 0) addTo(sum, difference, n);
        everywhere_[r] = next[r] + at;
      }
      addTo(sum, center_.data() + at, n);
      copyBytes(everywhere_.data(), static_cast<int>(ranks), sum, n * sizeof(float), true);
    });
  };
  return communicator.updateDirectly({exchangeCode, next_.data(), parts_.weights, parts_.count, update});
}

void OverlappedExchange::makeNext(Communicator& communicator, float alpha) {
  if (makeNextDirectly(communicator, alpha)) return;
  const auto make = [&](std::size_t first, std::size_t count, void* to) {
    alignas(64) float difference[updateTile];
    forEachTile(first, count, [&](std::size_t at, std::size_t n) {
      if (parts_.settings.checksFinite) checkFinite(parts_.weights, at, n);
      updateKernels().differ(difference, parts_.weights + at, center_.data() + at, alpha, n);
      wire_.put(to, at - first, difference, n);
    });
  };
  const auto take = [&](std::size_t first, std::size_t count, const void* sums) {
    std::memcpy(next_.data() + first, center_.data() + first, count * sizeof(float));
    wire_.add(next_.data() + first, sums, 0, count);
  };
  const StreamedSum streamed{exchangeCode, make, take};
  communicator.run({.collective = Collective::allReduce,
                    .count = parts_.count,
                    .type = wire_.type(),
                    .op = taccSum,
                    .streamed = &streamed});
}

void OverlappedExchange::moveWeights(const LocalStep& step) {
  const float alpha = underWay_.data()[1];
  alignas(64) float difference[updateTile], message[updateTile];
  forEachTile(0, parts_.count, [&](std::size_t at, std::size_t n) {
    updateKernels().differ(difference, parts_.weights + at, center_.data() + at, alpha, n);
    // By what was sent, which is rounded.
    if (!wire_.isExact()) wire_.put(message, 0, difference, n);
    step.apply(at, n, difference);
  });
  std::swap(center_, next_);
  setUnderWay(false, 0);
}

bool OverlappedExchange::exchangeAtOnce(const LocalStep& step, float alpha) {
  if (!mayBeDirect_) return false;
  const auto ranks = static_cast<std::size_t>(parts_.communicator.ranks());
  const auto own = static_cast<std::size_t>(parts_.communicator.rank());
  everywhere_.resize(ranks - 1);
  const auto update = [&](std::size_t first, std::size_t count, float* const* weights, float* const* centers) {
    forEachTile(first, count, [&](std::size_t at, std::size_t n) {
      for (std::size_t r = 0; r < ranks; ++r) {
        if (parts_.settings.checksFinite) checkFinite(weights[r], at, n);
        if (r != own) everywhere_[r < own ? r : r - 1] = centers[r] + at;
      }
      updateKernels().exchange({weights, nullptr, ranks, center_.data(), alpha, 0, at, n});
      copyBytes(everywhere_.data(), static_cast<int>(ranks - 1), center_.data() + at, n * sizeof(float), true);
    });
  };
  if (!parts_.communicator.updateDirectly({exchangeCode, parts_.weights, center_.data(), parts_.count, update}))
    return false;
  if (step.gradient != nullptr) stepAlone(step, parts_.count);
  return true;
}

void OverlappedExchange::exchange(const LocalStep& step, float alpha) {
  if (exchangeAtOnce(step, alpha)) return;
  setUnderWay(true, alpha);
  makeNext(parts_.communicator, alpha);
  moveWeights(step);
}

void OverlappedExchange::begin(float alpha) {
  setUnderWay(true, alpha);
  parts_.background.start([this, alpha](Communicator& communicator) {
    const auto started = std::chrono::steady_clock::now();
    makeNext(communicator, alpha);
    seconds_.store(seconds_.load() + std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count());
  });
}

void OverlappedExchange::finish(const LocalStep& step, float alpha) {
  (void)alpha;  // that of begin()
  parts_.background.wait();
  moveWeights(step);
}

void OverlappedExchange::readCenter(float* to) {
  const FloatBuffer& latest = isUnderWay() ? next_ : center_;
  std::copy_n(latest.data(), parts_.count, to);
}

}  // namespace tacc
