#include "easgd/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "core/error.hpp"
#include "easgd/checkpoint.hpp"
#include "easgd/modes.hpp"

namespace tacc {
namespace {

/// What has to be equal on all ranks.
struct Agreed {
  std::uint64_t count;
  std::int32_t mode, period, wire, group, allowsUnstable, checksFinite;
  float rate, elasticity, momentum;
  std::int32_t servers;

  bool operator==(const Agreed&) const = default;
  std::string describe() const {
    return fmt::format(
        "{} weights, mode {}, learning rate {}, elasticity {}, momentum {}, period {}, {} bits on the wire{}, group "
        "{}, allowUnstable {}, checkFinite {}, servers {}",
        count, easgdMode(static_cast<taccEasgdMode_t>(mode)).name, rate, elasticity, momentum, period,
        wire == taccEasgdWire32 ? 32 : 16, wire == taccEasgdWireBfloat16 ? " (bfloat16)" : "", group, allowsUnstable,
        checksFinite, servers);
  }
};

void checkAgreement(Communicator& communicator, const Agreed& mine) {
  std::vector<Agreed> all(static_cast<std::size_t>(communicator.ranks()));
  communicator.run({.collective = Collective::allGather,
                    .send = &mine,
                    .receive = all.data(),
                    .count = sizeof mine,
                    .type = taccUint8});
  for (std::size_t rank = 1; rank < all.size(); ++rank)
    if (!(all[rank] == all[0]))
      fail(taccInvalidUsage, "ranks make different EASGD: rank 0 has {}; rank {} has {}", all[0].describe(), rank,
           all[rank].describe());
}

}  // namespace

EasgdSession::EasgdSession(Communicator& communicator, Background& background, const EasgdSettings& settings,
                           float* weights, std::size_t count)
    : communicator_(communicator),
      background_(background),
      settings_(settings),
      weights_(weights),
      count_(count),
      velocity_(settings.momentum > 0 ? count : 0),
      parts_(communicator.ranks()) {
  checkAgreement(communicator,
                 {count, settings.mode, settings.period, settings.wire, settings.group, settings.allowsUnstable,
                  settings.checksFinite, settings.rate, settings.elasticity, settings.momentum, settings.servers});
  const EasgdMode& mode = easgdMode(settings.mode);
  mode_ = mode.make({communicator, background, settings_, weights, count});
  parts_ = mode_->parts();
  checkStability(settings_, mode.movesTogether ? parts_ : 1);
}

LocalStep EasgdSession::localStep(const float* gradient) noexcept {
  return {.weights = weights_,
          .velocity = settings_.momentum > 0 ? velocity_.data() : nullptr,
          .gradient = gradient,
          .rate = settings_.rate,
          .momentum = settings_.momentum};
}

template <class Work>
void EasgdSession::timed(const Work& work) {
  const auto started = std::chrono::steady_clock::now();
  work();
  waitSeconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
}

std::span<const taccUniqueId> EasgdSession::centerIds() const {
  const std::span<const taccUniqueId> ids = mode_->centerIds();
  if (!ids.empty()) return ids;
  fail(taccInvalidUsage, "mode {} with {} weights has no center that others can come to; async and hogwild have",
       easgdMode(settings_.mode).name, count_);
}

template <class Work>
void EasgdSession::forAll(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    if (easgdMode(settings_.mode).isSynchronous) communicator_.failWith(error);
    throw;
  }
}

void EasgdSession::requireStarted(const char* what) const {
  if (!isStarted_)
    fail(taccInvalidUsage, "{} before training has begun: call taccEasgdStart or taccEasgdLoad first", what);
}

void EasgdSession::start() {
  if (hasBegun_) background_.wait();
  hasBegun_ = false;
  communicator_.run({.collective = Collective::broadcast,
                     .send = communicator_.rank() == 0 ? weights_ : nullptr,
                     .receive = weights_,
                     .count = count_,
                     .type = taccFloat32});
  std::ranges::fill(velocity_.span(), 0.0f);
  mode_->start();
  steps_ = exchanges_ = 0;
  waitSeconds_ = 0;
  isStarted_ = true;
  beginNext();
}

void EasgdSession::beginNext() {
  const auto period = static_cast<std::uint64_t>(settings_.period);
  const bool begins = mode_->begins() == CenterExchange::Begins::beforeStep
                          ? (steps_ + 1) % period == 0
                          : mode_->begins() == CenterExchange::Begins::afterExchange && exchanges_ > 0;
  if (!begins || hasBegun_) return;
  mode_->begin(settings_.alpha(parts()));
  hasBegun_ = true;
}

void EasgdSession::step(const float* gradient) {
  requireStarted("taccEasgdStep");
  forAll([&] { stepNow(gradient); });
}

void EasgdSession::stepNow(const float* gradient) {
  ++steps_;
  const LocalStep local = localStep(gradient);
  const float alpha = settings_.alpha(parts());
  const bool isDue = steps_ % static_cast<std::uint64_t>(settings_.period) == 0;
  if (easgdMode(settings_.mode).isSynchronous && (isDue || mode_->stepsTogether()) && !hasBegun_)
    background_.waitForStreams();
  if (!isDue) {
    mode_->stepAlone(local, count_);
    beginNext();
    return;
  }
  if (hasBegun_) {
    timed([&] { background_.wait(); });
    mode_->finish(local, alpha);
    hasBegun_ = false;
  } else {
    timed([&] { mode_->exchange(local, alpha); });
  }
  ++exchanges_;
  beginNext();
}

void EasgdSession::exchange() {
  requireStarted("taccEasgdExchange");
  const LocalStep pulled = localStep(nullptr);
  const float alpha = settings_.alpha(parts());
  forAll([&] {
    timed([&] {
      if (hasBegun_) mode_->finish(pulled, alpha);
      hasBegun_ = false;
      if (easgdMode(settings_.mode).isSynchronous) background_.waitForStreams();
      mode_->exchange(pulled, alpha);
    });
    ++exchanges_;
    beginNext();
  });
}

void EasgdSession::quiesce() {
  if (hasBegun_) timed([&] { background_.wait(); });
}

void EasgdSession::readCenter(float* to) {
  requireStarted("taccEasgdCenter");
  quiesce();
  if (easgdMode(settings_.mode).isSynchronous) background_.waitForStreams();
  mode_->readCenter(to);
}

void EasgdSession::setRate(float rate) {
  EasgdSettings next = settings_;
  next.rate = rate;
  checkStability(next, easgdMode(next.mode).movesTogether ? parts() : 1);
  settings_.rate = rate;  // alone, as the background may read the others
}

taccEasgdInfo_t EasgdSession::info() const noexcept {
  const double all = mode_->backgroundSeconds() > 0 ? std::max(mode_->backgroundSeconds(), waitSeconds_) : waitSeconds_;
  const std::uint64_t width = settings_.wire == taccEasgdWire32 ? 4 : 2;
  return {.size = sizeof(taccEasgdInfo_t),
          .steps = steps_,
          .exchanges = exchanges_,
          .bytes = exchanges_ * 2 * count_ * width,
          .exchangeSeconds = all,
          .waitSeconds = waitSeconds_,
          .hiddenShare = all > 0 ? 1 - waitSeconds_ / all : 0,
          .alpha = settings_.alpha(parts()),
          .staleness = mode_->staleness()};
}

void EasgdSession::save(const std::string& path) {
  requireStarted("taccEasgdSave");
  quiesce();
  const CheckpointHeader header{.mode = settings_.mode,
                                .rank = communicator_.rank(),
                                .ranks = communicator_.ranks(),
                                .hasBegun = hasBegun_ ? 1 : 0,
                                .count = count_,
                                .steps = steps_,
                                .exchanges = exchanges_};
  std::vector<std::span<float>> parts = mode_->state();
  parts.insert(parts.begin(), {std::span(weights_, count_), velocity_.span()});
  writeCheckpoint(path, header, parts);
}

void EasgdSession::load(const std::string& path) {
  if (hasBegun_) background_.wait();
  std::vector<std::span<float>> parts = mode_->state();
  parts.insert(parts.begin(), {std::span(weights_, count_), velocity_.span()});
  const CheckpointHeader expected{
      .mode = settings_.mode, .rank = communicator_.rank(), .ranks = communicator_.ranks(), .count = count_};
  // Every rank has read its file, or knows why not, before one changes anything.
  std::unique_ptr<Checkpoint> read;
  std::string problem;
  try {
    read = std::make_unique<Checkpoint>(path, expected, parts);
  } catch (const Error& error) {
    problem = error.what();
  }
  struct Found {
    std::uint64_t steps, hasBegun, isRead;
  };
  const Found mine{read ? read->header().steps : 0, read ? static_cast<std::uint64_t>(read->header().hasBegun) : 0,
                   read ? 1u : 0u};
  std::vector<Found> all(static_cast<std::size_t>(communicator_.ranks()));
  communicator_.run({.collective = Collective::allGather,
                     .send = &mine,
                     .receive = all.data(),
                     .count = sizeof mine,
                     .type = taccUint8});
  if (!read) fail(taccInvalidArgument, "{}", problem);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].isRead == 0) fail(taccRemoteError, "rank {} could not load its state, so no rank did", rank);
    if (all[rank].steps != mine.steps || all[rank].hasBegun != mine.hasBegun)
      fail(taccInvalidUsage, "\"{}\" is of step {}, and what rank {} loads is of step {}; no rank loaded its state",
           path, mine.steps, rank, all[rank].steps);
  }
  read->copyTo(parts);
  mode_->restore();
  steps_ = read->header().steps;
  exchanges_ = read->header().exchanges;
  hasBegun_ = read->header().hasBegun != 0;
  waitSeconds_ = 0;
  isStarted_ = true;
  beginNext();
}

}  // namespace tacc
