#include "easgd/asynchronous.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "easgd/local_step.hpp"
#include "easgd/split_center.hpp"

namespace tacc {

namespace {

/// The ranks that keep a slice each, in the order of the slices: rank 0, or the first rank of every host.
std::vector<int> findKeepers(Communicator& communicator, const EasgdSettings& settings, std::size_t count) {
  if (settings.servers == taccEasgdServerRank0) return {0};
  const std::int32_t mine = communicator.standing().host;
  std::vector<std::int32_t> hosts(static_cast<std::size_t>(communicator.ranks()));
  communicator.run(
      {.collective = Collective::allGather, .send = &mine, .receive = hosts.data(), .count = 1, .type = taccInt32});
  std::vector<int> keepers;
  for (auto host = hosts.begin(); host != hosts.end(); ++host)
    if (keepers.size() < count && std::find(hosts.begin(), host, *host) == host)
      keepers.push_back(static_cast<int>(host - hosts.begin()));
  return keepers;
}

}  // namespace

AsynchronousExchange::AsynchronousExchange(const ExchangeParts& parts)
    : parts_(parts), isGuest_(!parts.settings.centers.empty()) {
  if (parts.count == 0) return;
  CenterOptions options;
  options.isLocked = parts.settings.mode != taccEasgdHogwild;
  options.servesHosts = true;
  if (isGuest_) {
    ids_ = parts.settings.centers;
    connect(options, nullptr, ids_.size());
  } else {
    keepOrConnect(options);
  }
}

void AsynchronousExchange::keepOrConnect(const CenterOptions& options) {
  Communicator& communicator = parts_.communicator;
  const std::vector<int> keepers = findKeepers(communicator, parts_.settings, parts_.count);
  const auto slice = static_cast<std::size_t>(std::ranges::find(keepers, communicator.rank()) - keepers.begin());
  KeptCenter mine{};
  if (slice < keepers.size()) {
    const auto [begin, end] = centerSlice(parts_.count, keepers.size(), slice);
    mine = keepCenter(end - begin, nullptr, options);
    own_ = mine.center.get();
    ownBegin_ = begin;
    kept_ = FloatBuffer(end - begin);
  }
  std::vector<taccUniqueId> all(static_cast<std::size_t>(communicator.ranks()));
  communicator.run({.collective = Collective::allGather,
                    .send = &mine.id,
                    .receive = all.data(),
                    .count = sizeof mine.id,
                    .type = taccUint8});
  for (const int keeper : keepers) ids_.push_back(all[static_cast<std::size_t>(keeper)]);
  connect(options, std::move(mine.center), slice);
}

void AsynchronousExchange::connect(const CenterOptions& options, std::unique_ptr<Center> own, std::size_t ownIndex) {
  std::vector<std::unique_ptr<Center>> slices;
  for (std::size_t i = 0; i < ids_.size(); ++i) {
    const auto [begin, end] = centerSlice(parts_.count, ids_.size(), i);
    slices.push_back(i == ownIndex ? std::move(own) : connectCenter(ids_[i], end - begin, options));
  }
  if (slices.size() == 1)
    center_ = std::move(slices.front());
  else
    center_ = std::make_unique<SplitCenter>(std::move(slices), static_cast<std::size_t>(parts_.communicator.rank()));
}

void AsynchronousExchange::start() {
  gaps_ = updatesBetween_ = 0;
  if (!center_) return;
  if (isGuest_) return center_->read(parts_.weights);
  if (keeps()) own_->write(parts_.weights + ownBegin_);
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
  if (keeps()) own_->read(kept_.data());
  return {kept_.span()};
}

void AsynchronousExchange::restore() {
  gaps_ = updatesBetween_ = 0;
  if (keeps()) own_->write(kept_.data());
  meet();
}

/// Who keeps some of the center goes last, unless somebody will never come.
void AsynchronousExchange::end() {
  try {
    meet();
  } catch (const Error&) {
  }
}

}  // namespace tacc
