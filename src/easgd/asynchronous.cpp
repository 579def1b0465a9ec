#include "easgd/asynchronous.hpp"

#include <utility>

#include "base/error.hpp"
#include "easgd/finite.hpp"

namespace tacc {

AsynchronousExchange::AsynchronousExchange(const ExchangeParts& parts)
    : parts_(parts), isGuest_(parts.settings.center.has_value()) {
  if (parts.count == 0) return;
  CenterOptions options;
  options.isLocked = parts.settings.mode != taccEasgdHogwild;
  options.servesHosts = true;
  if (isGuest_) {
    id_ = *parts.settings.center;
    center_ = connectCenter(id_, parts.count, options);
    return;
  }
  if (keeps()) {
    KeptCenter made = keepCenter(parts.count, nullptr, options);
    center_ = std::move(made.center);
    id_ = made.id;
    kept_ = FloatBuffer(parts.count);
  }
  parts.communicator.run({.collective = Collective::broadcast,
                          .send = keeps() ? &id_ : nullptr,
                          .receive = &id_,
                          .count = sizeof id_,
                          .type = taccUint8});
  if (!keeps()) center_ = connectCenter(id_, parts.count, options);
}

void AsynchronousExchange::start() {
  gaps_ = updatesBetween_ = 0;
  if (!center_) return;
  if (isGuest_) return center_->read(parts_.weights);
  if (keeps()) center_->write(parts_.weights);
  meet();
}

void AsynchronousExchange::exchange(const LocalStep& step, float alpha) {
  if (!center_) return;
  if (parts_.settings.checksFinite)
    forEachTile(0, parts_.count, [&](std::size_t first, std::size_t n) { checkFinite(parts_.weights, first, n); });
  const std::uint64_t before = center_->lastUpdate();
  center_->exchange(parts_.weights, alpha, [&](std::size_t first, std::size_t n, const float* difference) {
    step.apply(first, n, difference);
  });
  if (before == 0) return;
  ++gaps_;
  updatesBetween_ += center_->lastUpdate() - before - 1;
}

double AsynchronousExchange::staleness() const noexcept {
  return gaps_ == 0 ? 0 : static_cast<double>(updatesBetween_) / static_cast<double>(gaps_);
}

void AsynchronousExchange::readCenter(float* to) {
  if (center_) center_->read(to);
}

std::vector<std::span<float>> AsynchronousExchange::state() {
  if (keeps() && center_) center_->read(kept_.data());
  return {kept_.span()};
}

void AsynchronousExchange::restore() {
  gaps_ = updatesBetween_ = 0;
  if (keeps() && center_) center_->write(kept_.data());
  meet();
}

/// Who keeps the center goes last, unless somebody will never come.
void AsynchronousExchange::end() {
  try {
    meet();
  } catch (const Error&) {
  }
}

}  // namespace tacc
