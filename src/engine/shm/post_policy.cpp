#include "engine/shm/post_policy.hpp"

#include <algorithm>
#include <bit>

namespace tacc {
namespace {

constexpr std::uint32_t untriedPeriod = 2;   // every nth timed call tries the other way until both are known,
constexpr std::uint32_t otherPeriod = 4;     // later every nth, if that was nearly as good,
constexpr std::uint32_t hopelessPeriod = 8;  // and each nth of these in any case
constexpr float worthRetrying = 1.5F;
constexpr float clearlyLess = 0.95F;  // ways that are equally good take no turns
constexpr float forgetting = 1.05F;   // an estimate forgets: 5 % a timed call

}  // namespace

PostPolicyTuner::Choice PostPolicyTuner::choose(Collective collective, std::size_t bytes) {
  const auto key = static_cast<std::uint32_t>(collective) << 8 | static_cast<std::uint32_t>(std::bit_width(bytes));
  if (last_ == nullptr || key != lastKey_) {
    last_ = &classes_[key];
    lastKey_ = key;
  }
  Class& c = *last_;
  if (++c.calls % period_ != 0) return {c.streams, false, &c, bytes};
  const std::uint32_t timed = c.calls / period_;
  const float serving = c.estimate[c.streams ? 1 : 0], other = c.estimate[c.streams ? 0 : 1];
  const bool isFresh = serving == 0 || other == 0;
  const bool isDue = timed % (isFresh ? untriedPeriod : otherPeriod) == 0;
  const bool isWorthIt = isFresh || other <= worthRetrying * serving || timed / otherPeriod % hopelessPeriod == 0;
  return {isDue && isWorthIt ? !c.streams : c.streams, true, &c, bytes};
}

void PostPolicyTuner::record(const Choice& choice, double seconds) noexcept {
  Class& c = *choice.of;
  const auto perByte = static_cast<float>(seconds / static_cast<double>(std::max<std::size_t>(1, choice.bytes)));
  float& estimate = c.estimate[choice.stream ? 1 : 0];
  // The least of recent times is the cost; what is above it is other programs and late ranks.
  estimate = estimate == 0 ? perByte : std::min(perByte, estimate * forgetting);
  const float serving = c.estimate[c.streams ? 1 : 0], other = c.estimate[c.streams ? 0 : 1];
  if (serving != 0 && other != 0 && other < clearlyLess * serving) c.streams = !c.streams;
}

}  // namespace tacc
