#include "easgd/averaged.hpp"

#include <algorithm>

#include "easgd/local_step.hpp"
#include "engine/direct_update.hpp"
#include "engine/signature.hpp"
#include "engine/streamed_sum.hpp"

namespace tacc {

AveragedExchange::AveragedExchange(const ExchangeParts& parts, float share, bool mayBeDirect, FloatMemory memory)
    : parts_(parts),
      share_(share),
      mayBeDirect_(mayBeDirect && parts.settings.wire == taccEasgdWire32 && parts.communicator.ranks() > 1),
      wire_(parts.settings.wire),
      center_(parts.count, memory) {}

void AveragedExchange::start() {
  std::copy_n(parts_.weights, parts_.count, center_.data());
  isInParts_ = false;
}

/// What was saved may have been in parts.
void AveragedExchange::restore() {
  isInParts_ = true;
  makeCenterWhole();
}

void AveragedExchange::makeCenterWhole() {
  if (!isInParts_) return;
  const auto [begin, end] = ownPart(parts_.count, parts_.communicator.ranks(), parts_.communicator.rank());
  // Of each number one rank gives the value and all others a zero.
  std::fill(center_.data(), center_.data() + begin, 0.0f);
  std::fill(center_.data() + end, center_.data() + parts_.count, 0.0f);
  parts_.communicator.run({.collective = Collective::allReduce,
                           .send = center_.data(),
                           .receive = center_.data(),
                           .count = parts_.count,
                           .type = taccFloat32,
                           .op = taccSum});
  isInParts_ = false;
}

bool AveragedExchange::exchangeDirectly(const LocalStep& step, float alpha) {
  if (!mayBeDirect_) return false;
  const auto ranks = static_cast<std::size_t>(parts_.communicator.ranks());
  const auto update = [&](std::size_t first, std::size_t count, float* const* weights, float* const* gradients) {
    forEachTile(first, count, [&](std::size_t at, std::size_t n) {
      if (parts_.settings.checksFinite)
        for (std::size_t r = 0; r < ranks; ++r) checkFinite(weights[r], at, n, parts_.offset);
      updateKernels().exchange({weights, gradients, ranks, center_.data(), alpha, step.rate, at, n});
    });
  };
  // Where a rank has a velocity, and where others do not reach its gradient, it takes its step itself.
  const bool takesStep = step.gradient != nullptr && step.velocity == nullptr;
  auto* const gradient = const_cast<float*>(step.gradient);  // which the update only reads
  if (takesStep && parts_.communicator.updateDirectly({exchangeCode, parts_.weights, gradient, parts_.count, update}))
    return isInParts_ = true;
  if (!parts_.communicator.updateDirectly({exchangeCode, parts_.weights, nullptr, parts_.count, update})) return false;
  if (step.gradient != nullptr) stepAlone(step, parts_.count);
  return isInParts_ = true;
}

void AveragedExchange::exchangeByStreaming(const LocalStep& step, float alpha) {
  const UpdateKernels& kernels = updateKernels();
  // A group of n ranks with the same weights moves the center once, each of them by its n-th part.
  const auto make = [&](std::size_t first, std::size_t count, void* to) {
    alignas(64) float difference[updateTile];
    forEachTile(first, count, [&](std::size_t at, std::size_t n) {
      if (parts_.settings.checksFinite) checkFinite(parts_.weights, at, n, parts_.offset);
      kernels.differ(difference, parts_.weights + at, center_.data() + at, alpha, n);
      if (share_ == 1) {
        wire_.put(to, at - first, difference, n);
        step.apply(at, n, difference);
      } else {
        step.apply(at, n, difference);
        for (std::size_t i = 0; i < n; ++i) difference[i] *= share_;
        wire_.put(to, at - first, difference, n);
      }
    });
  };
  const auto take = [&](std::size_t first, std::size_t count, const void* sums) {
    wire_.add(center_.data() + first, sums, 0, count);
  };
  const StreamedSum streamed{exchangeCode, make, take};
  parts_.communicator.run({.collective = Collective::allReduce,
                           .count = parts_.count,
                           .type = wire_.type(),
                           .op = taccSum,
                           .streamed = &streamed});
}

void AveragedExchange::exchange(const LocalStep& step, float alpha) {
  if (exchangeDirectly(step, alpha)) return;
  makeCenterWhole();
  exchangeByStreaming(step, alpha);
}

void AveragedExchange::readCenter(float* to) {
  makeCenterWhole();
  std::copy_n(center_.data(), parts_.count, to);
}

}  // namespace tacc
