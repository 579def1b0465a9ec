#include "compute/conv/amx/tile_pace.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "compute/conv/amx/bf16x3.hpp"
#include "core/environment.hpp"

namespace tacc::conv {
namespace {

/// Products of tiles, and steps of twelve multiply-adds: both take 2,048 cycles of a core that starts two multiply-adds
/// a cycle, as all that have tiles do.
constexpr int productsOfProbe = 128, stepsOfProbe = 341;

template <class Body>
double secondsOf(const Body& body) {
  const auto start = TilePace::Clock::now();
  body();
  return std::chrono::duration<double>(TilePace::Clock::now() - start).count();
}

/// The median of a few turns: something else may run in between.
double measurePace(const KernelSet& kernels) {
  std::array<double, 5> ratios{};
  kernels.split->products(productsOfProbe);
  for (double& ratio : ratios) {
    const double ofTiles = secondsOf([&] { kernels.split->products(productsOfProbe); });
    ratio = ofTiles / secondsOf([&] { static_cast<void>(kernels.multiplyAdds(stepsOfProbe)); });
  }
  std::ranges::nth_element(ratios, ratios.begin() + ratios.size() / 2);
  return ratios[ratios.size() / 2];
}

std::atomic<const bool*> pretendedPace{nullptr};

bool mayDiffer() {
  const Environment& environment = processEnvironment();
  return environment.isa == "best" && !environment.reproducible.value_or(false);
}

/// The best without tiles.
const KernelSet& vectorKernels() {
  static const KernelSet& kernels = []() -> const KernelSet& {
    const std::vector<const KernelSet*> sets = availableKernels();
    return **std::ranges::find_if(sets, [](const KernelSet* set) { return set->split == nullptr; });
  }();
  return kernels;
}

}  // namespace

TilePace::TilePace(std::function<double()> probe, std::function<Clock::time_point()> now)
    : probe_(std::move(probe)), now_(std::move(now)) {}

bool TilePace::isFull() {
  const std::scoped_lock lock(mutex_);
  if (isMeasured_ && now_() < validUntil_) return isFull_;
  int slow = 0;
  for (int i = 0; i < probes; ++i) slow += probe_() > slowFrom ? 1 : 0;
  isFull_ = slow <= mostSlow;
  isMeasured_ = true;
  validUntil_ = now_() + (isFull_ ? Clock::duration{validFor} : Clock::duration{slowFor});
  return isFull_;
}

const KernelSet& kernelsForFloats(const KernelSet& best) {
  if (best.split == nullptr || best.split->products == nullptr || !mayDiffer()) return best;
  static TilePace pace([&best] { return measurePace(best); });
  const bool* const pretence = pretendedPace.load(std::memory_order_relaxed);
  const bool isFull = pretence != nullptr ? *pretence : pace.isFull();
  return isFull ? best : vectorKernels();
}

void pretendTilePace(const bool* isFull) { pretendedPace.store(isFull, std::memory_order_relaxed); }

}  // namespace tacc::conv
