#include "selection/tuning/tuning.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "tacc/tacc.h"
#include "topology/model/digest.hpp"

namespace tacc {
namespace {

/// Machines with the same layout can have networks of different generations. What was measured at joining is rough.
constexpr double otherNetwork = 8;
/// So far beyond the smallest and the largest measured size they still tell.
constexpr std::size_t beyond = 2;

std::string numbersOf(const std::vector<int>& numbers) {
  std::string text;
  for (const int number : numbers) text += (text.empty() ? "" : ", ") + std::to_string(number);
  return text;
}

std::string textOf(const std::vector<int>& ranksOfHost) {
  if (ranksOfHost.size() == 1) return fmt::format("{} ranks on one host", ranksOfHost.front());
  if (std::ranges::adjacent_find(ranksOfHost, std::ranges::not_equal_to()) == ranksOfHost.end())
    return fmt::format("{} hosts with {} rank{} each", ranksOfHost.size(), ranksOfHost.front(),
                       ranksOfHost.front() == 1 ? "" : "s");
  return fmt::format("{} hosts with {} ranks", ranksOfHost.size(), numbersOf(ranksOfHost));
}

std::string topologyText(const TuningPlace& place) {
  return place.isMeasured ? "a topology that ranks find out by measuring"
                          : fmt::format("a topology with the digest {:016x}", place.topology);
}

}  // namespace

int TuningPlace::ranks() const { return std::accumulate(ranksOfHost.begin(), ranksOfHost.end(), 0); }

std::string ownVersion() { return fmt::format("{}.{}.{}", TACC_MAJOR, TACC_MINOR, TACC_PATCH); }

std::uint64_t layoutDigest(const CostMachine& hosts) {
  Digest digest;
  digest.add(static_cast<std::uint64_t>(hosts.ranks));
  for (const CostLevel& level : hosts.levels) {
    digest.add(level.begins.size());
    for (const int begin : level.begins) digest.add(static_cast<std::uint64_t>(begin));
  }
  return digest.value();
}

std::string differenceOf(const TuningPlace& measured, const TuningPlace& here) {
  if (measured.version != here.version)
    return fmt::format("it was measured with tacc {}, and this is {}", measured.version, here.version);
  if (measured.transport != here.transport)
    return fmt::format("it was measured over {}, and here ranks communicate over {}", measured.transport,
                       here.transport);
  if (measured.ranksOfHost != here.ranksOfHost)
    return fmt::format("it was measured on {}, and here are {}", textOf(measured.ranksOfHost),
                       textOf(here.ranksOfHost));
  if (measured.isMeasured != here.isMeasured || (!here.isMeasured && measured.topology != here.topology))
    return fmt::format("it was measured on {}, and here is {}", topologyText(measured), topologyText(here));
  const double ratio = measured.speed.bytesPerSecond / here.speed.bytesPerSecond;
  if (here.ranksOfHost.size() > 1 && (ratio > otherNetwork || ratio < 1 / otherNetwork))
    return fmt::format("it was measured on a network of {:.4g} MB/s, and the one here has {:.4g} MB/s",
                       measured.speed.bytesPerSecond * 1e-6, here.speed.bytesPerSecond * 1e-6);
  return "";
}

const TunedSize* Tuning::find(Collective collective, std::size_t bytes) const {
  const auto found = std::ranges::find(collectives, collective, &TunedCollective::collective);
  if (found == collectives.end() || found->sizes.empty()) return nullptr;
  const std::vector<TunedSize>& sizes = found->sizes;
  const auto above = std::ranges::lower_bound(sizes, bytes, {}, &TunedSize::bytes);
  if (above == sizes.end()) return bytes / beyond <= sizes.back().bytes ? &sizes.back() : nullptr;
  if (above->bytes == bytes) return &*above;
  if (above == sizes.begin()) return above->bytes / beyond <= bytes ? &*above : nullptr;
  const auto below = above - 1;
  const auto asNumber = [](std::size_t size) { return static_cast<double>(size); };
  const bool isNearerBelow = asNumber(bytes) * asNumber(bytes) <= asNumber(below->bytes) * asNumber(above->bytes);
  return isNearerBelow ? &*below : &*above;
}

void Tuning::add(Collective collective, TunedSize measured) {
  auto found = std::ranges::lower_bound(collectives, collective, {}, &TunedCollective::collective);
  if (found == collectives.end() || found->collective != collective)
    found = collectives.insert(found, {collective, {}});
  const auto next = std::ranges::lower_bound(found->sizes, measured.bytes, {}, &TunedSize::bytes);
  if (next != found->sizes.end() && next->bytes == measured.bytes)
    *next = std::move(measured);
  else
    found->sizes.insert(next, std::move(measured));
}

}  // namespace tacc
