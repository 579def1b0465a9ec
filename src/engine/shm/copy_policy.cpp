#include "engine/shm/copy_policy.hpp"

#include <algorithm>
#include <bit>

#include "core/default_arithmetic.hpp"

namespace tacc {
namespace {

constexpr CopyPolicy plain{};
constexpr CopyPolicy slots{.nonTemporalSlots = true};
constexpr CopyPolicy results{.nonTemporalResults = true};
constexpr CopyPolicy both{.nonTemporalSlots = true, .nonTemporalResults = true};
constexpr CopyPolicy kernel{.throughKernel = true};
constexpr CopyPolicy kernelResults{.throughKernel = true, .nonTemporalResults = true};
constexpr CopyPolicy pipes{.throughKernel = true, .throughPipes = true};
constexpr CopyPolicy pipesResults{.throughKernel = true, .throughPipes = true, .nonTemporalResults = true};

constexpr std::array eagerPolicies{plain, slots};
constexpr std::array mappedPolicies{plain, results};
constexpr std::array stagedPolicies{slots, plain, both, results};
constexpr std::array eitherPolicies{slots, plain, both, results, kernel, kernelResults};
constexpr std::array cmaPolicies{kernel, kernelResults};
constexpr std::array eitherPipedPolicies{slots, plain, both, results, kernel, kernelResults, pipes, pipesResults};
constexpr std::array cmaPipedPolicies{kernel, kernelResults, pipes, pipesResults};
constexpr std::array pipedPolicies{pipes, pipesResults};

constexpr std::uint8_t freshTrials = 2;  // the first call of a policy may pay for page faults
constexpr float worthTrying = 1.5F;      // a policy that was this much slower at the next size is not tried at this one
constexpr float drift = 1.05F;           // an estimate forgets: 5 % a call
constexpr float weight = 0.25F;          // of one time in a mean,
constexpr float outlier = 4;             // in which it counts for so many times the mean at most
constexpr std::uint32_t retrialPeriod = 32;  // every 32nd call a policy that is nearly as good is tried again, twice
constexpr std::uint32_t timePeriod = 8;      // every nth call of the settled policy is timed
constexpr float nearlyAsGood = 1.5F;
constexpr std::uint32_t anyRetrial = 8;  // and each nth of these retrials takes any, as do the first: a fresh trial
                                         // may have met other programs, or a kernel that had to find the pages

/// A double holds the product of two floats whole: the same for every rounding that a program has set.
double timesExactly(float a, float b) noexcept { return static_cast<double>(a) * static_cast<double>(b); }

}  // namespace

std::span<const CopyPolicy> CopyPolicyTuner::policiesOf(CopyPolicyKind kind) noexcept {
  switch (kind) {
    case CopyPolicyKind::eager:
      return eagerPolicies;
    case CopyPolicyKind::mapped:
      return mappedPolicies;
    case CopyPolicyKind::staged:
      return stagedPolicies;
    case CopyPolicyKind::either:
      return eitherPolicies;
    case CopyPolicyKind::eitherPiped:
      return eitherPipedPolicies;
    case CopyPolicyKind::cmaPiped:
      return cmaPipedPolicies;
    case CopyPolicyKind::piped:
      return pipedPolicies;
    case CopyPolicyKind::cma:
      break;
  }
  return cmaPolicies;
}

std::uint32_t CopyPolicyTuner::Likeness::key() const noexcept {
  return static_cast<std::uint32_t>(collective) << 17 | static_cast<std::uint32_t>(kind) << 9 |
         static_cast<std::uint32_t>(inPlace) << 8 | magnitude;
}

CopyPolicyTuner::Class& CopyPolicyTuner::classFor(const Likeness& likeness) {
  const auto [place, isNew] = classes_.try_emplace(likeness.key());
  Class& fresh = place->second;
  if (!isNew) return fresh;
  const std::size_t count = policiesOf(likeness.kind).size();
  std::fill_n(fresh.trialsLeft.begin(), count, freshTrials);
  // What is known of the next smaller or larger size saves trying what is hopeless.
  for (const unsigned neighbour : {likeness.magnitude - 1, likeness.magnitude + 1}) {
    const auto found = classes_.find(Likeness{likeness.collective, likeness.kind, likeness.inPlace, neighbour}.key());
    if (found == classes_.end()) continue;
    const Class& known = found->second;
    if (std::any_of(known.trialsLeft.begin(), known.trialsLeft.begin() + static_cast<std::ptrdiff_t>(count),
                    [](std::uint8_t left) { return left != 0; }))
      continue;
    const float best =
        *std::min_element(known.estimate.begin(), known.estimate.begin() + static_cast<std::ptrdiff_t>(count));
    fresh.current = known.current;
    for (std::size_t m = 0; m < count; ++m) {
      if (known.estimate[m] <= best * worthTrying) continue;
      fresh.estimate[m] = known.estimate[m];
      fresh.trialsLeft[m] = 0;
    }
    break;
  }
  return fresh;
}

CopyPolicyTuner::Pick CopyPolicyTuner::pick(Class& c, std::size_t count) noexcept {
  ++c.calls;
  for (std::size_t m = 0; m < count; ++m)
    if (c.trialsLeft[m] != 0) return {m, true};
  const auto best = static_cast<std::size_t>(
      std::min_element(c.estimate.begin(), c.estimate.begin() + static_cast<std::ptrdiff_t>(count)) -
      c.estimate.begin());
  // Two policies that are equally good take no turns.
  if (c.estimate[best] < timesExactly(0.95F, c.estimate[c.current])) c.current = static_cast<std::uint8_t>(best);
  if (c.calls % retrialPeriod == 0) {
    const std::uint32_t retrials = c.calls / retrialPeriod;
    const bool any = retrials <= count || retrials % anyRetrial == 0;
    for (std::size_t i = 0; i < count; ++i) {
      c.nextRetrial = static_cast<std::uint8_t>((c.nextRetrial + 1) % count);
      if (any || c.estimate[c.nextRetrial] <= timesExactly(nearlyAsGood, c.estimate[c.current]))
        return {c.nextRetrial, false};
    }
  }
  // The second of two counts: the first one meets what the other policy left in the caches.
  if (c.calls > retrialPeriod && c.calls % retrialPeriod == 1) return {c.nextRetrial, true};
  return {c.current, c.calls % timePeriod == 0};
}

CopyPolicy CopyPolicyTuner::choose(Collective collective, CopyPolicyKind kind, std::size_t bytes, bool inPlace) {
  const auto policies = policiesOf(kind);
  const Likeness likeness{collective, kind, inPlace, static_cast<unsigned>(std::bit_width(bytes))};
  const std::uint32_t key = likeness.key();
  if (last_ == nullptr || key != lastKey_) {
    last_ = &classFor(likeness);
    lastKey_ = key;
  }
  const Pick picked = pick(*last_, policies.size());
  pending_ = picked.isTimed ? last_ : nullptr;
  pendingPolicy_ = picked.policy;
  pendingBytes_ = std::max<std::size_t>(1, bytes);
  return policies[pendingPolicy_];
}

std::optional<CopyPolicy> CopyPolicyTuner::settled(Collective collective, CopyPolicyKind kind, std::size_t bytes,
                                                   bool inPlace) const noexcept {
  const auto found =
      classes_.find(Likeness{collective, kind, inPlace, static_cast<unsigned>(std::bit_width(bytes))}.key());
  if (pending_ != nullptr || found == classes_.end()) return std::nullopt;
  Class c = found->second;
  const std::span<const CopyPolicy> policies = policiesOf(kind);
  const Pick next = pick(c, policies.size());
  return next.isTimed ? std::nullopt : std::optional(policies[next.policy]);
}

void CopyPolicyTuner::record(double seconds) noexcept {
  if (pending_ == nullptr) return;
  const DefaultArithmetic arithmetic;  // estimates are the same on all ranks
  estimateAnew(*pending_, seconds);
  pending_ = nullptr;
}

void CopyPolicyTuner::estimateAnew(Class& c, double seconds) noexcept {
  const auto perByte = static_cast<float>(seconds / static_cast<double>(pendingBytes_));
  float& estimate = c.estimate[pendingPolicy_];
  if (estimate == 0)
    estimate = perByte;
  else if (oversubscribed_ && c.trialsLeft[pendingPolicy_] == 0)
    estimate += weight * (std::min(perByte, outlier * estimate) - estimate);
  else  // the least of recent times is the cost; what is above it is other programs and late ranks
    estimate = std::min(perByte, estimate * drift);
  if (c.trialsLeft[pendingPolicy_] > 0) --c.trialsLeft[pendingPolicy_];
}

}  // namespace tacc
