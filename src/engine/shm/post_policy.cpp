#include "engine/shm/post_policy.hpp"

#include <algorithm>
#include <bit>

namespace tacc {
namespace {

constexpr std::uint32_t untriedPeriod = 2;   // every nth row tries the other way until both are known,
constexpr std::uint32_t otherPeriod = 8;     // later every nth, if that was nearly as good,
constexpr std::uint32_t hopelessPeriod = 8;  // and each nth of these in any case
constexpr float worthRetrying = 1.2F;
constexpr float clearlyLess = 0.95F;  // ways that are equally good take no turns
constexpr float forgetting = 1.05F;   // an estimate forgets: 5 % a row

}  // namespace

PostPolicyTuner::Choice PostPolicyTuner::choose(Collective collective, std::size_t bytes) {
  const auto key = static_cast<std::uint32_t>(collective) << 8 | static_cast<std::uint32_t>(std::bit_width(bytes));
  if (last_ == nullptr || key != lastKey_) {
    last_ = &classes_[key];
    last_->isBroken = true;
    lastKey_ = key;
  }
  Class& c = *last_;
  if (c.calls == row_) {
    c.calls = 0;
    ++c.rows;
  }
  if (c.calls == 0) beginRow(c);
  ++c.calls;
  return {c.streams != c.isTrying, c.calls == settling + 1 && !c.isBroken, c.calls == row_ && !c.isBroken, &c,
          bytes * (row_ - settling)};
}

void PostPolicyTuner::beginRow(Class& c) const noexcept {
  const float serving = c.estimate[c.streams ? 1 : 0], other = c.estimate[c.streams ? 0 : 1];
  const bool isFresh = serving == 0 || other == 0;
  const bool isDue = c.rows % (isFresh ? untriedPeriod : otherPeriod) == 1;
  const bool isWorthIt = isFresh || other <= worthRetrying * serving || c.rows / otherPeriod % hopelessPeriod == 0;
  c.isTrying = isDue && isWorthIt;
  c.isBroken = false;
}

void PostPolicyTuner::record(const Choice& choice, double seconds) noexcept {
  Class& c = *choice.of;
  const auto perByte = static_cast<float>(seconds / static_cast<double>(std::max<std::size_t>(1, choice.bytes)));
  float& estimate = c.estimate[choice.stream ? 1 : 0];
  // The least of recent times is the cost; what is above it is other programs and late ranks.
  estimate = estimate == 0 ? perByte : std::min(perByte, estimate * forgetting);
  const float serving = c.estimate[c.streams ? 1 : 0], other = c.estimate[c.streams ? 0 : 1];
  if (serving != 0 && other != 0 && other < clearlyLess * serving) {
    c.streams = !c.streams;
    c.isTrying = !c.isTrying;  // the row that goes on stays as it is
  }
}

}  // namespace tacc
